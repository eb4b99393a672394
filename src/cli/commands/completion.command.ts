import { Argument, type Command } from '@commander-js/extra-typings';
import { withExample } from '../command.js';
import { print } from '../output.js';

/** Scripts that call `pua __complete`. In bash, a word also begins after `:` and `=`. */
const SCRIPTS = {
  bash: `_pua() {
  local line=\${COMP_LINE:0:COMP_POINT} words
  read -ra words <<< "$line"
  local current=\${line##* } IFS=$'\\n'
  [[ $current ]] || words+=('')
  COMPREPLY=($(pua __complete "\${words[@]:1}" 2> /dev/null | cut -f 1))
  current=\${current%"\${current##*[:=]}"}
  COMPREPLY=("\${COMPREPLY[@]#"$current"}")
}
complete -o default -F _pua pua`,
  zsh: `#compdef pua
_pua() {
  local -a found
  found=("\${(@f)$(pua __complete "\${(@)words[2,CURRENT]}" 2> /dev/null)}")
  found=("\${(@)\${(@)found//:/\\\\:}/$'\\t'/:}")
  [[ -n $found ]] && _describe pua found || _files
}
if [[ $funcstack[1] == _pua ]]; then _pua "$@"; else compdef _pua pua; fi`,
  fish: `function __pua_complete
  set -l words (commandline -opc) (commandline -ct)
  pua __complete $words[2..] 2> /dev/null
end
complete -c pua -a '(__pua_complete)'`,
};

/** Adds `pua completion`. */
export function completionCommand(command: Command): void {
  withExample(command, 'eval "$(pua completion bash)"')
    .addArgument(new Argument('<shell>', 'shell to use').choices(['bash', 'zsh', 'fish'] as const))
    .action((shell, { json }) => {
      const script = SCRIPTS[shell];
      print(json, { shell, script }, () => script);
    });
}
