# shellcheck shell=bash
# System packages: what is missing, and its installation through apt.

is_installed() {
  [[ $(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null) == installed ]]
}

is_root() { [[ $(id -u) -eq 0 ]]; }

# can_sudo: sudo exists and either asks a person at a terminal or needs no password.
can_sudo() { command -v sudo >/dev/null && { [[ -t 0 ]] || sudo -n true 2>/dev/null; }; }

# list_of KIND: the lines of a list without comments. NAME@SYSTEM is a package of that system alone,
# by the ID in /etc/os-release.
list_of() {
  local system
  system=$(sed -n 's/^ID=//p' /etc/os-release 2>/dev/null)
  sed "s/#.*//; s/[[:space:]]//g; s/@${system:-none}\$//; /@/d; /^\$/d" "$setup_folder/packages-$1.txt"
}

# missing_packages KIND...: those of the lists that are not installed, one a line.
missing_packages() {
  local kind name
  for kind in "$@"; do
    for name in $(list_of "$kind"); do
      is_installed "$name" || printf '%s\n' "$name"
    done
  done
}

# apt_get ARGS...: its many lines are shown only if it fails.
apt_get() {
  local -a as_root=()
  local log status=0
  is_root || as_root=(sudo)
  log=$(mktemp)
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq \
    -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 "$@" </dev/null >"$log" 2>&1 || status=$?
  [[ $status -eq 0 ]] || tail -n 20 "$log"
  rm "$log"
  return "$status"
}

apt_install() {
  apt_get update || die 2 "apt-get update failed: is there a network? missing: $*"
  apt_get install --yes --no-install-recommends "$@" ||
    die 2 "apt-get install failed: see above; missing: $*"
}

# set_up_packages KIND...: installs what is missing of the lists, or says exactly what to do.
set_up_packages() {
  local -a kinds=("$@") missing
  local fix
  if ! command -v dpkg-query >/dev/null; then
    die 2 "no dpkg here: install what these stand for, then pass --no-apt:" \
      "$(for kind in "${kinds[@]}"; do list_of "$kind"; done | xargs)"
  fi
  mapfile -t missing < <(missing_packages "${kinds[@]}")
  [[ ${#missing[@]} -gt 0 ]] || return 0
  fix="apt-get update && apt-get install --yes ${missing[*]}"
  is_root || can_sudo ||
    die 2 "missing packages: ${missing[*]}; neither root nor sudo here, so ask for: $fix"
  step "system packages: ${missing[*]}" apt_install "${missing[@]}"
}
