import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { installPackages, makePython } from '../test/support/packages.js';

/*
 * Validates deploy/kubernetes strictly against the schemas of the Kubernetes API: an unknown field is an error. kubernetes-validate
 * contains these schemas, so it needs neither a cluster nor the network.
 */

const REQUIREMENTS = join(import.meta.dirname, 'kubernetes/requirements.txt');
/** Types that are generated from the schemas of the Prometheus Operator's objects. */
const OPERATOR = join(import.meta.dirname, 'kubernetes');
/** The oldest and the newest Kubernetes version in kubernetes-validate. */
const VERSIONS = ['1.25', '1.37'];
const RENDERED = {
  ConfigMap: 'public-user-api-\\w+',
  Service: 'public-user-api',
  Deployment: 'public-user-api',
  PodDisruptionBudget: 'public-user-api',
  HorizontalPodAutoscaler: 'public-user-api',
  NetworkPolicy: 'public-user-api',
};

describe('the manifests for Kubernetes', () => {
  let folder: string;
  let programs: string;
  let manifests: string;
  let podMonitor: string;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'pua-kubernetes-'));
    const objects = run('kubectl', 'kustomize', 'deploy/kubernetes-autoscaling').stdout.split(/^---\n/m);
    const isPodMonitor = (object: string) => object.includes('\nkind: PodMonitor\n');
    manifests = objects.filter((object) => !isPodMonitor(object)).join('---\n');
    podMonitor = objects.find(isPodMonitor)!;
    programs = await makePython(folder, REQUIREMENTS);
    await installPackages(folder, OPERATOR);
  });
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

  it('match the schemas of the oldest and the newest Kubernetes version in every object', () => {
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
    ['Deployment', 'revisionHistoryLimit: 5', 'revisionHistoryLimit: five', 'spec.revisionHistoryLimit'],
    ['HorizontalPodAutoscaler', 'averageValue:', 'averageValues:', 'spec.metrics.0.pods.target'],
    ['PodDisruptionBudget', 'maxUnavailable:', 'maxUnavailble:', 'spec'],
    ['Deployment', 'initContainers:', 'initcontainers:', 'spec.template.spec'],
    ['NetworkPolicy', 'podSelector:', 'podSelectors:', 'spec'],
  ])('fail the schema check if a mistake is in the %s: %j written as %j', (kind, correct, wrong, where) => {
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
  });

  it('contain a PodMonitor that matches the Prometheus Operator’s schema, which rejects misspelled fields', () => {
    /** Returns the compiler's errors for the object as a literal, such as an unknown field. */
    const faults = (yaml: string) => {
      const json = 'import json, sys, yaml; json.dump(yaml.safe_load(sys.stdin), sys.stdout)';
      const object = execFileSync(join(programs, 'python'), ['-c', json], { input: yaml, encoding: 'utf8' });
      const file = join(folder, 'pod-monitor.ts');
      const type = '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/PodMonitor';
      writeFileSync(
        file,
        `import type { IPodMonitor } from '${type}';\nexport const it: IPodMonitor = ${object};\n`,
      );
      const flags = ['--noEmit', '--strict', '--skipLibCheck', '--module', 'nodenext', '--ignoreConfig'];
      return run(process.execPath, 'node_modules/typescript/bin/tsc', ...flags, file).stdout;
    };
    expect(faults(podMonitor)).toBe('');
    expect(faults(podMonitor.replace('interval:', 'intervals:'))).toContain(`'"intervals"' does not exist`);
    expect(faults(podMonitor.replace('jobLabel:', 'joblabel:'))).toContain(`'"joblabel"' does not exist`);
  });
});
