import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { makePython } from '../support/python.js';

/*
 * Validates deploy/kubernetes strictly against the schemas of the Kubernetes API: an unknown field is an error. kubernetes-validate
 * contains these schemas, so it needs neither a cluster nor the network. Only where LIBRARIES is set, as `.ci/run` does.
 */

const REQUIREMENTS = join(import.meta.dirname, 'kubernetes/requirements.txt');
/** The oldest and the newest version of Kubernetes whose schemas it contains. */
const VERSIONS = ['1.25', '1.37'];
const RENDERED = {
  ConfigMap: 'public-user-api-\\w+',
  Service: 'public-user-api',
  Deployment: 'public-user-api',
  PodDisruptionBudget: 'public-user-api',
  NetworkPolicy: 'public-user-api',
};

(process.env.LIBRARIES ? describe : describe.skip)('the manifests for Kubernetes', () => {
  let folder: string;
  let programs: string;
  let manifests: string;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'pua-kubernetes-'));
    manifests = run('kubectl', 'kustomize', 'deploy/kubernetes').stdout;
    programs = await makePython(folder, REQUIREMENTS);
  }, 300_000);
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  function run(program: string, ...parameters: string[]) {
    const { status, stdout, stderr, error } = spawnSync(program, parameters, { encoding: 'utf8' });
    if (error) throw error;
    return { status, stdout, stderr };
  }

  /** Validates the text. @returns the exit code, and one line for each object and version */
  function validate(text: string) {
    const file = join(folder, 'rendered.yml');
    writeFileSync(file, text);
    const versions = VERSIONS.flatMap((version) => ['--kubernetes-version', version]);
    const { status, stdout } = run(join(programs, 'kubernetes-validate'), '--strict', ...versions, file);
    return { status, lines: stdout.trimEnd().replaceAll(`${file} `, '').split('\n') };
  }

  it('match the schemas of the oldest and the newest Kubernetes, every object of them', () => {
    const { status, lines } = validate(manifests);
    expect(lines).toEqual(
      VERSIONS.flatMap((version) =>
        Object.entries(RENDERED).map(([kind, name]) =>
          expect.stringMatching(
            new RegExp(`^INFO passed for resource ${kind.toLowerCase()}/${name} against version ${version}$`),
          ),
        ),
      ),
    );
    expect(status).toBe(0);
  });

  it.each<[kind: keyof typeof RENDERED, correct: string, wrong: string, where: string]>([
    ['ConfigMap', '\ndata:', '\ndatas:', ''],
    ['Service', 'targetPort:', 'targetport:', 'spec.ports.0'],
    [
      'Deployment',
      'readOnlyRootFilesystem:',
      'readOnlyRootFileSystem:',
      'spec.template.spec.containers.0.securityContext',
    ],
    ['Deployment', 'replicas: 3', 'replicas: three', 'spec.replicas'],
    ['PodDisruptionBudget', 'maxUnavailable:', 'maxUnavailble:', 'spec'],
    ['Deployment', 'initContainers:', 'initcontainers:', 'spec.template.spec'],
    ['NetworkPolicy', 'podSelector:', 'podSelectors:', 'spec'],
  ])(
    'are checked strictly: a mistake in the %s is found, %j written as %j',
    (kind, correct, wrong, where) => {
      const objects = manifests.split(/^---\n/m).map((text) => `\n${text}`);
      const object = objects.find((text) => text.includes(`\nkind: ${kind}\n`))!;
      expect(object).toContain(correct);
      const { status, lines } = validate(object.replace(correct, wrong));
      expect(lines).toEqual(
        VERSIONS.map((version) =>
          expect.stringMatching(
            new RegExp(`^ERROR did not validate for resource \\S+ against version ${version}: ${where}: `),
          ),
        ),
      );
      expect(status).toBe(1);
    },
  );
});
