import { execFile, spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { cpSync, readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { installPackages, makePython } from '../test/support/packages.js';

const run = promisify(execFile);

/** Deadline for a program, in milliseconds. */
export const PROGRAM_MS = 600_000;
/** Deadline for the download and the compiler. */
const COMPILING_MS = 1_500_000;

/** A language: how to install its dependencies into a folder and run its programs there. */
export interface Language {
  /** Names of its programs, and their files. */
  readonly programs: Readonly<Record<string, string>>;
  /** A required program, and a command that fails without it. */
  readonly needs: readonly [program: string, ...parameters: string[]];
  install(folder: string): Promise<unknown>;
  command(folder: string, program: string): readonly [file: string, ...parameters: string[]];
}

/** The programs in a folder, by name: its files with this extension, except the shared harness. */
export const programsIn = (folder: string, extension: string): Record<string, string> =>
  Object.fromEntries(
    readdirSync(folder)
      .filter((name) => name.endsWith(extension) && !/^harness/i.test(name))
      .map((name) => [basename(name, extension), join(folder, name)]),
  );

/** Compiles a module's programs and third-party programs. */
export const goInstall =
  (...others: string[]) =>
  (folder: string) =>
    run('go', ['build', '-mod=readonly', '-o', join(folder, 'bin/'), './...', ...others], {
      cwd: folder,
      timeout: COMPILING_MS,
      env: { ...process.env, GOPATH: join(folder, 'path'), GOFLAGS: '-modcacherw' },
    });

/** Compiles a Rust package with its dependencies. */
export const cargoInstall = (folder: string) =>
  run('cargo', ['build', '--locked', '--quiet'], { cwd: folder, timeout: COMPILING_MS });

/** Node, Python and Go; their programs and locked versions are in folders of these names. */
export const languagesIn = (folder: string): Record<'node' | 'python' | 'go', Language> => ({
  node: {
    programs: programsIn(join(folder, 'node'), '.mjs'),
    needs: [process.execPath, '--version'],
    install: (installed) => installPackages(installed),
    command: (installed, program) => [process.execPath, join(installed, `${program}.mjs`)],
  },
  python: {
    programs: programsIn(join(folder, 'python'), '.py'),
    needs: ['python3', '-c', 'import ensurepip'],
    install: (installed) => makePython(installed, join(installed, 'requirements.txt')),
    command: (installed, program) => [join(installed, 'venv/bin/python'), join(installed, `${program}.py`)],
  },
  go: {
    programs: Object.fromEntries(
      readdirSync(join(folder, 'go'))
        .filter((name) => !/^(?:go\.|harness)/.test(name))
        .map((name) => [name, join(folder, 'go', name, 'main.go')]),
    ),
    needs: ['go', 'version'],
    install: goInstall(),
    command: (installed, program) => [join(installed, 'bin', program)],
  },
});

/**
 * Copies a language's programs to a folder and installs their dependencies there.
 *
 * @throws Error that names the missing program
 */
export async function installLanguage(
  name: string,
  { needs, install }: Language,
  from: string,
  folder: string,
): Promise<void> {
  const [program, ...parameters] = needs;
  await run(program, parameters).catch((error: Error) => {
    throw new Error(`Not run: the libraries of ${name} need ${needs.join(' ')}: ${error.message}`);
  });
  cpSync(from, folder, { recursive: true });
  await install(folder);
}

/** A running program: its output by line, and at the end its error output. */
export interface RunningProgram {
  readonly child: ChildProcessWithoutNullStreams;
  readonly lines: AsyncIterator<string>;
  readonly errors: Promise<string>;
}

/** Starts a program of an installed language with only these variables of this process. */
export function startProgram(
  language: Language,
  folder: string,
  program: string,
  variables: Readonly<Record<string, string>>,
): RunningProgram {
  const [file, ...parameters] = language.command(folder, program);
  const child = spawn(file, parameters, {
    cwd: folder,
    env: { PATH: process.env.PATH, HOME: folder, LANG: 'C.UTF-8', ...variables },
    stdio: ['pipe', 'pipe', 'pipe'],
    timeout: PROGRAM_MS,
  });
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  return { child, lines, errors: text(child.stderr) };
}
