
using namespace System.Management.Automation
using namespace System.Management.Automation.Language

Register-ArgumentCompleter -Native -CommandName 'solocron' -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)

    $commandElements = $commandAst.CommandElements
    $command = @(
        'solocron'
        for ($i = 1; $i -lt $commandElements.Count; $i++) {
            $element = $commandElements[$i]
            if ($element -isnot [StringConstantExpressionAst] -or
                $element.StringConstantType -ne [StringConstantType]::BareWord -or
                $element.Value.StartsWith('-') -or
                $element.Value -eq $wordToComplete) {
                break
        }
        $element.Value
    }) -join ';'

    $completions = @(switch ($command) {
        'solocron' {
            [CompletionResult]::new('--lock-name', '--lock-name', [CompletionResultType]::ParameterName, 'Name of the job: of all instances with one name, one runs the command')
            [CompletionResult]::new('--ttl', '--ttl', [CompletionResultType]::ParameterName, 'Life of the lock without a heartbeat; not how long the job may take [default: 30s]')
            [CompletionResult]::new('--store', '--store', [CompletionResultType]::ParameterName, 'Where the lock lives: redis://HOST, local, ... [default: REDIS_URL]')
            [CompletionResult]::new('--store-file', '--store-file', [CompletionResultType]::ParameterName, 'File whose first line is the store''s URL, for secrets')
            [CompletionResult]::new('--key-prefix', '--key-prefix', [CompletionResultType]::ParameterName, 'Start of the key in the store; the key is TEXT:{NAME} [default: solocron]')
            [CompletionResult]::new('--tls-ca', '--tls-ca', [CompletionResultType]::ParameterName, 'Certificates to trust for rediss://: a PEM file, or the system''s [default: bundled roots]')
            [CompletionResult]::new('--tls-cert', '--tls-cert', [CompletionResultType]::ParameterName, 'Client certificate for rediss://, a PEM file')
            [CompletionResult]::new('--tls-key', '--tls-key', [CompletionResultType]::ParameterName, 'Private key of the client certificate, a PEM file')
            [CompletionResult]::new('--on-lock-lost', '--on-lock-lost', [CompletionResultType]::ParameterName, 'What to do with the command when the lock cannot be kept [default: stop]')
            [CompletionResult]::new('--cron', '--cron', [CompletionResultType]::ParameterName, 'Crontab schedule, such as ''*/5 * * * *''; may be given several times [default: run once]')
            [CompletionResult]::new('--tz', '--tz', [CompletionResultType]::ParameterName, 'Time zone of the schedule, such as Europe/Berlin [default: TZ, else the system''s, else UTC]')
            [CompletionResult]::new('--start-deadline', '--start-deadline', [CompletionResultType]::ParameterName, 'How late a firing may still start [default: 60s]')
            [CompletionResult]::new('--overlap', '--overlap', [CompletionResultType]::ParameterName, 'A firing that falls due while an earlier run holds the lock [default: skip]')
            [CompletionResult]::new('--on-runner-lost', '--on-runner-lost', [CompletionResultType]::ParameterName, 'A firing whose runner died in the middle [default: skip]')
            [CompletionResult]::new('--wait', '--wait', [CompletionResultType]::ParameterName, 'Wait for the lock [default: do not wait]')
            [CompletionResult]::new('--once-per', '--once-per', [CompletionResultType]::ParameterName, 'Start at most once in this period among all hosts: the period of the crontab line')
            [CompletionResult]::new('--skip-exit-code', '--skip-exit-code', [CompletionResultType]::ParameterName, 'Exit status when the command was not run; a fleet may want 0 [default: 75]')
            [CompletionResult]::new('--timeout', '--timeout', [CompletionResultType]::ParameterName, 'Stop a command that runs longer [default: no limit]')
            [CompletionResult]::new('--kill-after', '--kill-after', [CompletionResultType]::ParameterName, 'Time from the stop signal to SIGKILL [default: 8s, on a signal never]')
            [CompletionResult]::new('--stop-signal', '--stop-signal', [CompletionResultType]::ParameterName, 'Signal that the command is sent first when solocron stops it [default: TERM]')
            [CompletionResult]::new('--on-stop', '--on-stop', [CompletionResultType]::ParameterName, 'On TERM, INT, QUIT or HUP: pass it on, or let the running command end [default: forward]')
            [CompletionResult]::new('--retries', '--retries', [CompletionResultType]::ParameterName, 'Start a failed command again up to N times, under the same lock [default: 0]')
            [CompletionResult]::new('--retry-delay', '--retry-delay', [CompletionResultType]::ParameterName, 'Time before each retry [default: 1s]')
            [CompletionResult]::new('--log-format', '--log-format', [CompletionResultType]::ParameterName, 'Form of solocron''s own messages (on stderr), of --status and of --next [default: text]')
            [CompletionResult]::new('--next', '--next', [CompletionResultType]::ParameterName, 'Print the next N firings of --cron, one a line, and exit')
            [CompletionResult]::new('--from', '--from', [CompletionResultType]::ParameterName, 'With --next: the firings after this instant, such as 2026-03-29T00:00:00+01:00 [default: now]')
            [CompletionResult]::new('--shell', '--shell', [CompletionResultType]::ParameterName, 'COMMAND is one string for /bin/sh -c [default: off]')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Say more; twice for still more')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Say more; twice for still more')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Say less; twice for still less')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Say less; twice for still less')
            [CompletionResult]::new('--status', '--status', [CompletionResultType]::ParameterName, 'Print what the store knows of --lock-name and exit')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help: -h in short, --help in full')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help: -h in short, --help in full')
            [CompletionResult]::new('-V', '-V ', [CompletionResultType]::ParameterName, 'Print the version; --version names the time zone data too')
            [CompletionResult]::new('--version', '--version', [CompletionResultType]::ParameterName, 'Print the version; --version names the time zone data too')
            break
        }
    })

    $completions.Where{ $_.CompletionText -like "$wordToComplete*" } |
        Sort-Object -Property ListItemText
}
