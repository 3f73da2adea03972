# shellcheck shell=bash
# Sourced by the scripts in tools/ and .ci/: what it takes to build and run on this machine.
# Before: root is set. After: parse_setup_option, lock_set_up, prepare run|test.

self=$(realpath --relative-to="$root" "$0")
setup_folder="$root/tools/setup"
torch_version=''
index_url=''
torch_kind=lean
use_apt=1

# shellcheck source=tools/setup/messages.sh
. "$setup_folder/messages.sh"
# shellcheck source=tools/setup/packages.sh
. "$setup_folder/packages.sh"
# shellcheck source=tools/setup/python.sh
. "$setup_folder/python.sh"
# shellcheck source=tools/setup/build.sh
. "$setup_folder/build.sh"

torch_version=$(pinned_torch)

# parse_setup_option ARGS...: sets `taken` to how many arguments it used, 0 for none of its own.
# shellcheck disable=SC2034  # the caller reads it
parse_setup_option() {
  taken=1
  case ${1:-} in
    --torch | --index-url)
      require_value "$1" $#
      if [[ $1 == --torch ]]; then take_torch "$2"; else take_index "$2"; fi
      taken=2
      ;;
    --full) torch_kind=full ;;
    --no-apt) use_apt=0 ;;
    *) taken=0 ;;
  esac
}

take_torch() {
  torch_version=$1
  [[ $1 =~ ^[0-9]+(\.[0-9]+)+[0-9A-Za-z.+]*$ ]] ||
    die 2 "--torch $1: expected a version such as $(pinned_torch)"
}

take_index() {
  index_url=$1
  [[ $1 == *://* || -d $1 ]] || die 2 "--index-url $1: expected a URL, or a folder of wheels"
}

# lock_set_up: a second set-up of the same tree waits for the first.
lock_set_up() {
  exec {set_up_lock}<"$setup_folder"
  flock --nonblock "$set_up_lock" && return
  say "waiting for another set-up of this tree to finish"
  flock --timeout 1800 "$set_up_lock" || die 2 "another set-up has held this tree for 30 minutes"
}

unlock_set_up() { exec {set_up_lock}<&-; }

# prepare run|test: everything short of the build. A GPU, and the tests, need the full wheel.
prepare() {
  local -a kinds=(run)
  local kind
  [[ $1 == run ]] || kinds+=(test)
  count_gpus
  if [[ $1 == test || $gpu_count -gt 0 ]]; then torch_kind=full; fi
  [[ $use_apt -eq 0 ]] || set_up_packages "${kinds[@]}"
  set_up_environment
  set_up_torch "$torch_kind"
  for kind in "${kinds[@]}"; do set_up_requirements "$kind"; done
}
