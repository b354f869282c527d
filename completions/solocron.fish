complete -c solocron -l lock-name -d 'Name of the job: of all instances with one name, one runs the command' -r
complete -c solocron -l ttl -d 'Life of the lock without a heartbeat; not how long the job may take [default: 30s]' -r
complete -c solocron -l store -d 'Where the lock lives: redis://HOST, local, ... [default: REDIS_URL]' -r
complete -c solocron -l store-file -d 'File whose first line is the store\'s URL, for secrets' -r -F
complete -c solocron -l key-prefix -d 'Start of the key in the store; the key is TEXT:{NAME} [default: solocron]' -r
complete -c solocron -l tls-ca -d 'Certificates to trust for rediss://: a PEM file, or the system\'s [default: bundled roots]' -r -F
complete -c solocron -l tls-cert -d 'Client certificate for rediss://, a PEM file' -r -F
complete -c solocron -l tls-key -d 'Private key of the client certificate, a PEM file' -r -F
complete -c solocron -l on-lock-lost -d 'What to do with the command when the lock cannot be kept [default: stop]' -r -f -a "stop\t''
continue\t''"
complete -c solocron -l cron -d 'Crontab schedule, such as \'*/5 * * * *\'; may be given several times [default: run once]' -r
complete -c solocron -l tz -d 'Time zone of the schedule, such as Europe/Berlin [default: TZ, else the system\'s, else UTC]' -r
complete -c solocron -l start-deadline -d 'How late a firing may still start [default: 60s]' -r
complete -c solocron -l overlap -d 'A firing that falls due while an earlier run holds the lock [default: skip]' -r -f -a "skip\t''
queue\t''"
complete -c solocron -l on-runner-lost -d 'A firing whose runner died in the middle [default: skip]' -r -f -a "skip\t''
rerun\t''"
complete -c solocron -l wait -d 'Wait for the lock [default: do not wait]' -r
complete -c solocron -l once-per -d 'Start at most once in this period among all hosts: the period of the crontab line' -r
complete -c solocron -l skip-exit-code -d 'Exit status when the command was not run; a fleet may want 0 [default: 75]' -r
complete -c solocron -l timeout -d 'Stop a command that runs longer [default: no limit]' -r
complete -c solocron -l kill-after -d 'Time from the stop signal to SIGKILL [default: 8s, on a signal never]' -r
complete -c solocron -l stop-signal -d 'Signal that the command is sent first when solocron stops it [default: TERM]' -r
complete -c solocron -l on-stop -d 'On TERM, INT, QUIT or HUP: pass it on, or let the running command end [default: forward]' -r -f -a "forward\t''
finish\t''"
complete -c solocron -l retries -d 'Start a failed command again up to N times, under the same lock [default: 0]' -r
complete -c solocron -l retry-delay -d 'Time before each retry [default: 1s]' -r
complete -c solocron -l log-format -d 'Form of solocron\'s own messages (on stderr), of --status and of --next [default: text]' -r -f -a "text\t''
json\t''"
complete -c solocron -l next -d 'Print the next N firings of --cron, one a line, and exit' -r
complete -c solocron -l from -d 'With --next: the firings after this instant, such as 2026-03-29T00:00:00+01:00 [default: now]' -r
complete -c solocron -l shell -d 'COMMAND is one string for /bin/sh -c [default: off]'
complete -c solocron -s v -l verbose -d 'Say more; twice for still more'
complete -c solocron -s q -l quiet -d 'Say less; twice for still less'
complete -c solocron -l status -d 'Print what the store knows of --lock-name and exit'
complete -c solocron -s h -l help -d 'Print help: -h in short, --help in full'
complete -c solocron -s V -l version -d 'Print the version; --version names the time zone data too'
