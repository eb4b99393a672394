import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { SETTINGS } from '../../src/config/settings.js';
import { postgres } from '../support/database.js';

const run = (program: string, ...parameters: string[]) => {
  const { status, stdout, stderr, error } = spawnSync(program, parameters, { encoding: 'utf8' });
  if (error) throw error;
  return { status, stdout, stderr };
};
const UNIT = 'deploy/systemd/public-user-api.service';
/** The image's own command, without its program. */
const [, ...IMAGE] = JSON.parse(/^CMD (\[.*\])$/m.exec(readFileSync('Dockerfile', 'utf8'))![1]!) as string[];

postgres.describe('what is deployed', () => {
  describe('with systemd', () => {
    const unit = readFileSync(UNIT, 'utf8');

    it('is a unit that systemd takes, and keeps from all that it does not need', () => {
      // It looks for the program in /usr/bin, which need not be where Node is here.
      const { stderr } = run('systemd-analyze', 'verify', UNIT);
      expect(stderr.replaceAll(/^.*\/usr\/bin\/node.*$\n?/gm, '')).toBe('');
      const { stdout } = run('systemd-analyze', 'security', '--offline=true', UNIT);
      expect(Number(/exposure level for \S+: ([\d.]+)/.exec(stdout)![1])).toBeLessThan(2);
    });

    it('starts the program as the image does, itself and not through npm', () => {
      expect(unit).toContain(`ExecStart=/usr/bin/node ${IMAGE.join(' ')}\n`);
    });
  });

  describe('with Kubernetes', () => {
    const all = () => run('kubectl', 'kustomize', 'deploy/kubernetes').stdout;
    const kinds = (text: string) =>
      [...text.matchAll(/^kind: (\w+)$/gm)].map(([, kind]) => kind!).toSorted((a, b) => a.localeCompare(b));

    it('is what kustomize makes of it: server, migration, service, budget and policy over one set of settings', () => {
      const text = all();
      expect(kinds(text)).toEqual([
        'ConfigMap',
        'Deployment',
        'Job',
        'NetworkPolicy',
        'PodDisruptionBudget',
        'Service',
      ]);
      const [, settings] = /^data:\n((?: {2}\S.*\n)+)/m.exec(text)!;
      const names = [...settings!.matchAll(/^ {2}(\w+):/gm)].map(([, name]) => name);
      expect(Object.keys(SETTINGS)).toEqual(expect.arrayContaining(names));
      expect(names).not.toContain('SECRET_KEY');
    });

    it('runs as nobody, writes nothing, and may nothing', () => {
      for (const pod of all()
        .split(/^---$/m)
        .filter((one) => /^kind: (Deployment|Job)$/m.test(one)))
        for (const line of [
          'runAsNonRoot: true',
          'readOnlyRootFilesystem: true',
          'allowPrivilegeEscalation: false',
          '- ALL',
          'automountServiceAccountToken: false',
          'type: RuntimeDefault',
        ])
          expect(pod).toContain(line);
    });

    it('has time to end, and its probes ask what answers', () => {
      const text = all();
      const [, seconds] = /terminationGracePeriodSeconds: (\d+)/.exec(text)!;
      expect(Number(seconds)).toBeGreaterThanOrEqual(15); // docs/operations.md
      expect(
        [...text.matchAll(/path: (\/\w+)/g)].map(([, path]) => path!).toSorted((a, b) => a.localeCompare(b)),
      ).toEqual(['/livez', '/livez', '/readyz']);
    });
  });
});
