# shellcheck shell=bash
# The project's Python environment (.venv/): LibTorch's wheel, charts, tests. A stamp holds what
# an install was asked for, so that the next run asks nobody and works offline.

venv="$root/.venv"
venv_python="$venv/bin/python"
stamps="$venv/.stratagem"

# usable_python: the first python3 on PATH that is new enough and can make an environment.
usable_python() {
  local candidate
  while read -r candidate; do
    if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' \
      2>/dev/null; then
      printf '%s' "$candidate"
      return
    fi
  done < <(type -aP python3)
  return 1
}

set_up_environment() {
  local interpreter
  [[ ! -x $venv_python || ! -x $venv/bin/pip ]] || return 0
  interpreter=$(usable_python) ||
    die 2 "no python3 (3.10 or newer) with venv and ensurepip on PATH: install python3-venv"
  step "Python environment .venv ($interpreter)" "$interpreter" -m venv --clear "$venv"
}

# pip_install ARGUMENT...: without errors about pins of packages that were installed alone, which pip
# reports after each later install. It still refuses requirements that exclude one another.
pip_install() {
  local -a quiet=()
  [[ -t 2 ]] || quiet=(--quiet)
  "$venv/bin/pip" install --disable-pip-version-check --no-compile --no-warn-conflicts "${quiet[@]}" "$@" ||
    die 2 "pip could not install: check the network and the version; pip's message is above"
}

# stamped NAME CONTENT: whether the last finished install of NAME was asked for exactly this.
stamped() { [[ -f $stamps/$1 && $(<"$stamps/$1") == "$2" ]]; }

stamp() {
  mkdir -p "$stamps"
  printf '%s\n' "$2" >"$stamps/$1"
}

fingerprint() { cat "$@" | sha256sum | cut -d ' ' -f 1; }

pinned_torch() { sed -n 's/^torch==//p' "$setup_folder/requirements-torch.txt"; }

# count_gpus: sets gpu_count once, 0 where there is no GPU or no working driver.
gpu_count=''
count_gpus() {
  [[ -z $gpu_count ]] || return 0
  gpu_count=$(nvidia-smi --list-gpus 2>/dev/null | grep --count '^GPU ') || gpu_count=0
}

# torch_identity: the LibTorch asked for; the build is configured anew when it changes.
torch_identity() { printf '%s from %s' "$torch_version" "${index_url:-the default index}"; }

install_torch_lean() {
  pip_install --no-deps "${index[@]}" "torch==$torch_version"
  local libraries
  libraries=$("$venv_python" "$setup_folder/lean_requirements.py")
  [[ -z $libraries ]] ||
    pip_install "${index[@]}" "${constraints[@]}" \
      --requirement <(printf '%s\n' "$libraries")
}

install_torch_full() { pip_install "${index[@]}" "torch==$torch_version"; }

# set_up_torch lean|full: lean is enough to build and run on CPU (Python cannot import it), full
# also serves CUDA and Python's torch. A full one satisfies a lean request.
set_up_torch() {
  local kind=$1 identity
  local -a index=() constraints=()
  [[ -z $index_url ]] || index=(--index-url "$index_url")
  [[ $torch_version != "$(pinned_torch)" ]] ||
    constraints=(--constraint "$setup_folder/constraints-torch.txt")
  identity=$(torch_identity)
  ! stamped torch "full $identity" || return 0
  ! stamped torch "$kind $identity" || return 0
  rm -f "$stamps/torch" "$stamps/test"
  step "LibTorch $torch_version ($kind install)" "install_torch_$kind"
  stamp torch "$kind $identity"
}

# set_up_requirements run|test: requirements-NAME.txt, then requirements-NAME-alone.txt if it is there.
set_up_requirements() {
  local list="$setup_folder/requirements-$1.txt" alone="$setup_folder/requirements-$1-alone.txt"
  local wanted
  local -a lists=("$list")
  [[ ! -f $alone ]] || lists+=("$alone")
  wanted="$(fingerprint "${lists[@]}")"
  ! grep -q torch "$list" || wanted+=" with torch $torch_version"
  ! stamped "$1" "$wanted" || return 0
  step "Python packages of $(basename "$list")" install_requirements "$list"
  [[ ! -f $alone ]] ||
    step "Python packages of $(basename "$alone")" pip_install --no-deps --requirement "$alone"
  stamp "$1" "$wanted"
}

# install_requirements FILE: torchvision belongs to one torch; for another, pip finds its own.
install_requirements() {
  if [[ $torch_version == "$(pinned_torch)" ]]; then
    pip_install --requirement "$1"
  else
    pip_install --requirement <(sed 's/^torchvision==.*/torchvision/' "$1") \
      --constraint <(printf 'torch==%s\n' "$torch_version")
  fi
}
