# Completion of stratagem for bash: source this file, or install it as
# share/bash-completion/completions/stratagem. Subcommands, options and names come from the program.
_stratagem() {
  local program=${COMP_WORDS[0]} word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
  local words='' kept=
  if [[ $COMP_CWORD -eq 1 ]]; then
    words=$("$program" --help | sed -n 's/^  \([a-z][a-z]*\)  .*/\1/p')
  elif [[ $word == -* ]]; then
    words=$("$program" "${COMP_WORDS[1]}" --help | grep -o -e '--[a-z][a-z0-9-]*' | sort -u)
  else
    case $previous in
      --strategy) words=strategies ;;
      --model) words=models ;;
      --schedule) words=schedules ;;
    esac
    [[ -z $words ]] || words=$("$program" list "$words" | awk '{ print $1 }')
  fi
  [[ $word != *,* ]] || kept=${word%,*},  # one more value of a list
  COMPREPLY=($(compgen -P "$kept" -W "$words" -- "${word##*,}"))  # zsh has no mapfile
}
complete -o default -F _stratagem stratagem
