import type { Argument, Command, Option } from 'commander';

export const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof SHELLS)[number];

/** What can be typed at one position of the command line. */
interface Place {
  /** The commands before it, separated by spaces; empty for `pua` alone. */
  readonly path: string;
  readonly commands: readonly Word[];
  readonly options: readonly OptionWord[];
  /** Its argument is a file or a folder. */
  readonly takesFile: boolean;
}

interface Word {
  readonly word: string;
  readonly what: string;
}

interface OptionWord extends Word {
  /** What may follow: one of these words, a file, anything, or nothing. */
  readonly value: readonly string[] | 'file' | 'any' | 'none';
}

/** Writes the script with which a shell completes the commands and options of `pua`. */
export function completionScript(program: Command, shell: Shell): string {
  return { bash, zsh, fish }[shell](placesOf(program));
}

function placesOf(command: Command, path = ''): Place[] {
  const words = command.commands.flatMap((child) =>
    [child.name(), ...child.aliases()].map((word) => ({ word, what: child.description() })),
  );
  const here = {
    path,
    commands: [...words, ...command.registeredArguments.flatMap(argumentWords)],
    options: [
      ...command.options.map(optionWord),
      { word: '--help', what: 'show the help', value: 'none' } as const,
    ],
    takesFile: command.registeredArguments.some((argument) => isFile(argument.name())),
  };
  return [
    here,
    ...command.commands.flatMap((child) =>
      [child.name(), ...child.aliases()].flatMap((name) => placesOf(child, `${path} ${name}`.trim())),
    ),
  ];
}

/** The words of an argument that is one of a few. */
const argumentWords = ({ argChoices = [], description }: Argument): Word[] =>
  argChoices.map((word) => ({ word, what: description }));

function optionWord(option: Option): OptionWord {
  const value =
    option.argChoices ??
    (isFile(option.flags) ? 'file' : option.required || option.optional ? 'any' : 'none');
  return { word: option.long!, what: option.description, value };
}

const isFile = (text: string) => /\b(file|folder)\b/.test(text);

/** In single quotes, for a POSIX shell. */
const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;

/** The path of the commands so far, as bash and zsh find it. */
const walk = (places: readonly Place[], words: string) => `  local place= word
  for word in ${words}; do
    case "\${place:+$place }$word" in
      ${places
        .filter(({ path }) => path !== '')
        .map(({ path }) => quoted(path))
        .join('|')}) place="\${place:+$place }$word" ;;
    esac
  done`;

function bash(places: readonly Place[]): string {
  const values = ({ path, options }: Place) =>
    options
      .filter(({ value }) => value !== 'none')
      .map(({ word, value }) => {
        const reply =
          value === 'file'
            ? 'COMPREPLY=($(compgen -f -- "$current"))'
            : value === 'any'
              ? 'COMPREPLY=()'
              : `COMPREPLY=($(compgen -W ${quoted((value as readonly string[]).join(' '))} -- "$current"))`;
        return `    ${quoted(`${path} ${word}`.trim())}) ${reply}; return ;;`;
      });
  return `# bash completion of pua: source <(pua completion bash)
_pua() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]}
${walk(places, '"${COMP_WORDS[@]:1:COMP_CWORD-1}"')}
  case "\${place:+$place }$previous" in
${places.flatMap(values).join('\n')}
  esac
  case "$place" in
${places
  .map(({ path, commands, options, takesFile }) => {
    const words = [...commands, ...options].map(({ word }) => word).join(' ');
    const files = takesFile ? ' $(compgen -f -- "$current")' : '';
    return `    ${quoted(path)}) COMPREPLY=($(compgen -W ${quoted(words)} -- "$current")${files}) ;;`;
  })
  .join('\n')}
  esac
}
complete -o filenames -F _pua pua
`;
}

function zsh(places: readonly Place[]): string {
  const described = ({ word, what }: Word) => quoted(`${word.replaceAll(':', '\\:')}:${what}`);
  return `#compdef pua
# zsh completion of pua: source <(pua completion zsh), or keep it as _pua in a folder of $fpath
_pua() {
  local current=$words[CURRENT] previous=$words[CURRENT-1]
${walk(places, '"${(@)words[2,CURRENT-1]}"')}
  local -a found
  case "\${place:+$place }$previous" in
${places
  .flatMap(({ path, options }) =>
    options
      .filter(({ value }) => value !== 'none')
      .map(({ word, value }) => {
        const reply =
          value === 'file'
            ? '_files'
            : value === 'any'
              ? '_message value'
              : `compadd -- ${(value as readonly string[]).map(quoted).join(' ')}`;
        return `    ${quoted(`${path} ${word}`.trim())}) ${reply}; return ;;`;
      }),
  )
  .join('\n')}
  esac
  case "$place" in
${places
  .map(
    ({ path, commands, options, takesFile }) =>
      `    ${quoted(path)}) found=(${[...commands, ...options].map(described).join(' ')})${takesFile ? '; _files' : ''} ;;`,
  )
  .join('\n')}
  esac
  _describe -t commands 'command or option' found
}
if [ "$funcstack[1]" = _pua ]; then _pua "$@"; else compdef _pua pua; fi
`;
}

function fish(places: readonly Place[]): string {
  const at = (path: string) => `-n ${quoted(`__pua_at ${path}`.trim())}`;
  const paths = places.map(({ path }) => path).filter((path) => path !== '');
  const lines = places.flatMap(({ path, commands, options, takesFile }) => [
    ...commands.map(
      ({ word, what }) => `complete -c pua -f ${at(path)} -a ${quoted(word)} -d ${quoted(what)}`,
    ),
    ...options.map(({ word, what, value }) => {
      const rest =
        value === 'none'
          ? ' -f'
          : value === 'file'
            ? ' -r -F'
            : value === 'any'
              ? ' -x'
              : ` -x -a ${quoted((value as readonly string[]).join(' '))}`;
      return `complete -c pua${rest} ${at(path)} -l ${word.slice(2)} -d ${quoted(what)}`;
    }),
    takesFile ? `complete -c pua -F ${at(path)}` : `complete -c pua -f ${at(path)}`,
  ]);
  return `# fish completion of pua: pua completion fish | source
function __pua_at
  set -l path
  for word in (commandline -opc)[2..]
    if contains -- (string join -- ' ' $path $word) ${paths.map(quoted).join(' ')}
      set -a path $word
    end
  end
  test "$path" = "$argv"
end
${lines.join('\n')}
`;
}
