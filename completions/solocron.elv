
use builtin;
use str;

set edit:completion:arg-completer[solocron] = {|@words|
    fn spaces {|n|
        builtin:repeat $n ' ' | str:join ''
    }
    fn cand {|text desc|
        edit:complex-candidate $text &display=$text' '(spaces (- 14 (wcswidth $text)))$desc
    }
    var command = 'solocron'
    for word $words[1..-1] {
        if (str:has-prefix $word '-') {
            break
        }
        set command = $command';'$word
    }
    var completions = [
        &'solocron'= {
            cand --lock-name 'Name of the job: of all instances with one name, one runs the command'
            cand --ttl 'Life of the lock without a heartbeat; not how long the job may take [default: 30s]'
            cand --store 'Where the lock lives: redis://HOST, local, ... [default: REDIS_URL]'
            cand --store-file 'File whose first line is the store''s URL, for secrets'
            cand --key-prefix 'Start of the key in the store; the key is TEXT:{NAME} [default: solocron]'
            cand --tls-ca 'Certificates to trust for rediss://: a PEM file, or the system''s [default: bundled roots]'
            cand --tls-cert 'Client certificate for rediss://, a PEM file'
            cand --tls-key 'Private key of the client certificate, a PEM file'
            cand --on-lock-lost 'What to do with the command when the lock cannot be kept [default: stop]'
            cand --cron 'Crontab schedule, such as ''*/5 * * * *''; may be given several times [default: run once]'
            cand --tz 'Time zone of the schedule, such as Europe/Berlin [default: TZ, else the system''s, else UTC]'
            cand --start-deadline 'How late a firing may still start [default: 60s]'
            cand --overlap 'A firing that falls due while an earlier run holds the lock [default: skip]'
            cand --on-runner-lost 'A firing whose runner died in the middle [default: skip]'
            cand --wait 'Wait for the lock [default: do not wait]'
            cand --once-per 'Start at most once in this period among all hosts: the period of the crontab line'
            cand --skip-exit-code 'Exit status when the command was not run; a fleet may want 0 [default: 75]'
            cand --timeout 'Stop a command that runs longer [default: no limit]'
            cand --kill-after 'Time from the stop signal to SIGKILL [default: 8s, on a signal never]'
            cand --stop-signal 'Signal that the command is sent first when solocron stops it [default: TERM]'
            cand --on-stop 'On TERM, INT, QUIT or HUP: pass it on, or let the running command end [default: forward]'
            cand --retries 'Start a failed command again up to N times, under the same lock [default: 0]'
            cand --retry-delay 'Time before each retry [default: 1s]'
            cand --log-format 'Form of solocron''s own messages (on stderr), of --status and of --next [default: text]'
            cand --next 'Print the next N firings of --cron, one a line, and exit'
            cand --from 'With --next: the firings after this instant, such as 2026-03-29T00:00:00+01:00 [default: now]'
            cand --shell 'COMMAND is one string for /bin/sh -c [default: off]'
            cand -v 'Say more; twice for still more'
            cand --verbose 'Say more; twice for still more'
            cand -q 'Say less; twice for still less'
            cand --quiet 'Say less; twice for still less'
            cand --status 'Print what the store knows of --lock-name and exit'
            cand -h 'Print help: -h in short, --help in full'
            cand --help 'Print help: -h in short, --help in full'
            cand -V 'Print the version; --version names the time zone data too'
            cand --version 'Print the version; --version names the time zone data too'
        }
    ]
    $completions[$command]
}
