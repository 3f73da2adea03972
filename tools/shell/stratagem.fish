# Completion of stratagem for fish: install it in share/fish/vendor_completions.d.
function __stratagem_subcommands
    stratagem --help | string match -rg '^  ([a-z]+)  '
end
function __stratagem_options
    set -l words (commandline -opc)
    stratagem $words[2] --help | string match -rga -- '(--[a-z][a-z0-9-]*)' | sort -u
end
function __stratagem_names
    set -l index (contains -i -- (commandline -opc)[-1] --strategy --model --schedule); or return
    set -l kinds strategies models schedules
    set -l kept (string match -r '.*,' -- (commandline -ct)) # one more value of a list
    stratagem list $kinds[$index] | string match -rg '^(\S+)' | string replace -r '^' "$kept"
end
complete -c stratagem -n 'test (count (commandline -opc)) -eq 1' -f -a '(__stratagem_subcommands)'
complete -c stratagem -n 'string match -q -- "-*" (commandline -ct)' -a '(__stratagem_options)'
complete -c stratagem -a '(__stratagem_names)'
