#compdef stratagem
# Completion of stratagem for zsh: install it as _stratagem in a folder of $fpath. It uses the
# completion for bash, which lies beside it or in share/bash-completion/completions.
autoload -Uz bashcompinit && bashcompinit
source "${${(%):-%x}:A:h}/stratagem.bash" 2>/dev/null ||
  source "${${(%):-%x}:A:h:h:h}/bash-completion/completions/stratagem"
_bash_complete -o default -F _stratagem  # "complete" registers it for the next time only
