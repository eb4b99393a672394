import { Argument } from 'commander';
import type { Command } from 'commander';
import { addCommand } from '../command.js';
import { completionScript, SHELLS } from '../completion.js';
import type { Shell } from '../completion.js';
import { print } from '../output.js';

/** Adds `pua completion`. */
export function completionCommand(program: Command): void {
  addCommand(
    program,
    'completion',
    'Print the script that completes commands and options of pua in a shell: source <(pua completion bash)',
    'pua completion bash',
  )
    .addArgument(new Argument('<shell>', 'shell to print the script for').choices(SHELLS))
    .action((shell: Shell, { json }: { json?: boolean }) => {
      const script = completionScript(program, shell);
      print(json, { shell, script }, () => script.trimEnd());
    });
}
