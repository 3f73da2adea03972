# shellcheck shell=bash
# Configuring and building a preset, each only when something changed.

# build_folder PRESET
build_folder() {
  if [[ $1 == release ]]; then printf '%s/build' "$root"; else printf '%s/build-%s' "$root" "$1"; fi
}

# jobs: one a core, but no more than memory allows at 2 GB a compiler.
jobs() {
  local cores memory
  cores=$(nproc)
  memory=$(awk '/^MemAvailable:/ { print int($2 / 2e6) }' /proc/meminfo)
  [[ $memory -ge 1 ]] || memory=1
  printf '%s' "${CMAKE_BUILD_PARALLEL_LEVEL:-$((cores < memory ? cores : memory))}"
}

# configure PRESET [CMAKE-OPTION...]: a cache made for another LibTorch is dropped, never a user's.
configure() {
  local preset=$1 folder stamp_file wanted
  shift
  folder=$(build_folder "$preset")
  stamp_file="$folder/.configured"
  wanted="$(torch_identity); $(fingerprint "$root/CMakePresets.json"); $venv; $*"
  [[ ! -f $folder/build.ninja || ! -f $stamp_file || $(<"$stamp_file") != "$wanted" ]] || return 0
  if [[ -f $stamp_file ]]; then
    rm -rf "$folder/CMakeCache.txt" "$folder/CMakeFiles" "$stamp_file"
  fi
  step "configuring $preset" configure_quietly --preset "$preset" "$@"
  printf '%s\n' "$wanted" >"$stamp_file"
}

configure_quietly() { run_cmake "$@" >/dev/null; }

run_cmake() {
  (cd "$root" && cmake "$@") || die 2 "cmake $* failed: see above"
}

# build PRESET TARGET...
build() {
  local preset=$1
  shift
  step "building $preset: $*" run_build "$(build_folder "$preset")" "$@"
}

# run_build FOLDER TARGET...: shows what is compiled and linked, not what is looked at every time.
run_build() {
  local folder=$1
  shift
  NINJA_STATUS='[%f/%t, %e s] ' run_cmake --build "$folder" --parallel "$(jobs)" --target "$@" |
    { grep --line-buffered -vE 'Re-checking globbed|WriteBuildInformation|no work to do' || true; }
}

# configure_release: with CUDA in it where there is a GPU to use it.
configure_release() {
  count_gpus
  if [[ $gpu_count -gt 0 ]]; then
    configure release -DSTRATAGEM_CUDA=ON
  else
    configure release -DSTRATAGEM_CUDA=OFF
  fi
}
