# shellcheck shell=bash
# Messages and timed steps of the set-up scripts. Everything goes to stderr: stdout belongs to
# the command that is run afterwards.

if [[ -t 2 && -z ${NO_COLOR:-} ]]; then
  bold=$'\e[1m' red=$'\e[31m' plain=$'\e[0m'
else
  bold='' red='' plain=''
fi

say() { printf '%s\n' "$*" >&2; }

# die STATUS MESSAGE...: one line and out.
die() {
  local status=$1
  shift
  say "${red}${self}: $*${plain}"
  exit "$status"
}

now_ms() {
  local stamp=${EPOCHREALTIME/[.,]/}
  printf '%s' "${stamp%???}"
}

# seconds_since START_MS: as "12.3 s".
seconds_since() {
  local elapsed=$(($(now_ms) - $1))
  printf '%d.%d s' $((elapsed / 1000)) $((elapsed % 1000 / 100))
}

# step TITLE COMMAND...: runs the command under a heading, then prints how long it took.
# Never call it in a condition: `set -e` would not hold inside the command.
step() {
  local title=$1 start
  shift
  start=$(now_ms)
  say "${bold}==> ${title}${plain}"
  "$@" >&2
  say "    done in $(seconds_since "$start")"
}

# require_value OPTION COUNT: an option at the end of the line has no value.
require_value() {
  [[ $2 -ge 2 ]] || die 2 "$1 needs a value"
}

# one_argument SCRIPT-ARGUMENT...: a script that takes one argument refuses a second.
one_argument() {
  [[ $# -le 1 ]] || die 2 "unknown argument $2: see $self --help"
}

# usage: the comment at the head of the calling script, without its marks.
usage() { sed -n '2,/^[^#]/{/^#/!d;/^# shellcheck/d;s/^# \{0,1\}//;p}' "$0"; }
