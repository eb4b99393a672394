import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { SETTINGS } from '../../src/config/settings.js';
import { puaJson, startPua } from '../support/command-line.js';
import { createEmptyDatabase, postgres } from '../support/database.js';
import { freePort } from '../support/oauth.js';
import { ServerProcess } from '../support/server.js';
import { until } from '../support/timing.js';

const run = (program: string, ...parameters: string[]) => {
  const { status, stdout, stderr, error } = spawnSync(program, parameters, { encoding: 'utf8' });
  if (error) throw error;
  return { status, stdout, stderr };
};
const UNIT = 'deploy/systemd/public-user-api.service';
const MIGRATION = 'deploy/systemd/public-user-api-migrate.service';
/** Arguments of the image's command, without the program name. */
const [, ...IMAGE] = JSON.parse(/^CMD (\[.*\])$/m.exec(readFileSync('Dockerfile', 'utf8'))![1]!) as string[];

postgres.describe('the deployment files', () => {
  describe('for systemd', () => {
    const unit = readFileSync(UNIT, 'utf8');

    it.each([UNIT, MIGRATION])(
      'contain a unit that systemd accepts, and that restricts its privileges: %s',
      (file) => {
        // systemd-analyze expects Node in /usr/bin, where it may not be on this host.
        const { stderr } = run('systemd-analyze', 'verify', file);
        expect(stderr.replaceAll(/^.*\/usr\/bin\/node.*$\n?/gm, '')).toBe('');
        const { stdout } = run('systemd-analyze', 'security', '--offline=true', file);
        expect(Number(/exposure level for \S+: ([\d.]+)/.exec(stdout)![1])).toBeLessThan(2);
      },
    );

    it('migrate only on request, not at each start', async () => {
      expect(unit).not.toMatch(/^ExecStart.*migrate/m);
      const migration = readFileSync(MIGRATION, 'utf8');
      expect(migration).toMatch(/^Type=oneshot$/m);
      expect(migration).not.toContain('[Install]');
      const [, command] = /^ExecStart=\/usr\/bin\/node bin\/pua\.mjs (.+)$/m.exec(migration)!;
      const database = await createEmptyDatabase();
      try {
        const [code] = (await once(startPua(database.environment, command!.split(' ')), 'close')) as [number];
        expect(code).toBe(0);
        const { pending } = await puaJson<{ pending: string[] }>(database.environment, ['db', 'status']);
        expect(pending).toEqual([]);
      } finally {
        await database.drop();
      }
    });

    it('start the program as the image does, without npm', () => {
      expect(unit).toContain(`ExecStart=/usr/bin/node ${IMAGE.join(' ')}\n`);
    });
  });

  it('name images by version in the Compose files', () => {
    for (const file of ['docker-compose.yml', 'deploy/compose/docker-compose.yml'])
      for (const [, image] of readFileSync(file, 'utf8').matchAll(/^ +image: (.+)$/gm))
        expect(image).toMatch(/^[\w-]+:\d/);
  });

  describe('for Kubernetes', () => {
    const all = () => run('kubectl', 'kustomize', 'deploy/kubernetes').stdout;
    const kinds = (text: string) =>
      [...text.matchAll(/^kind: (\w+)$/gm)].map(([, kind]) => kind!).toSorted((a, b) => a.localeCompare(b));

    it('produce a deployment, service, disruption budget, network policy and settings without SECRET_KEY', () => {
      const text = all();
      expect(kinds(text)).toEqual([
        'ConfigMap',
        'Deployment',
        'NetworkPolicy',
        'PodDisruptionBudget',
        'Service',
      ]);
      const [, settings] = /^data:\n((?: {2}\S.*\n)+)/m.exec(text)!;
      const names = [...settings!.matchAll(/^ {2}(\w+):/gm)].map(([, name]) => name);
      expect(Object.keys(SETTINGS)).toEqual(expect.arrayContaining(names));
      expect(names).not.toContain('SECRET_KEY');
    });

    it('run every container without root, a writable filesystem or capabilities', () => {
      const text = all();
      const count = (line: RegExp) => [...text.matchAll(line)].length;
      const containers = count(/^ +(- )?image: /gm);
      expect(containers).toBe(2);
      for (const line of [/readOnlyRootFilesystem: true/g, /allowPrivilegeEscalation: false/g, /- ALL$/gm])
        expect([line, count(line)]).toEqual([line, containers]);
      for (const line of [
        'runAsNonRoot: true',
        'automountServiceAccountToken: false',
        'type: RuntimeDefault',
      ])
        expect(text).toContain(line);
    });

    it('migrate in each pod before its server starts, even if all start at once on an empty database', async () => {
      const text = all();
      const [, , migration] = /^( +)initContainers:\n([^]*?)(?=^\1\w)/m.exec(text)!;
      const command = [...migration!.matchAll(/^ +- (pua|db|migrate)$/gm)].map(([, word]) => word!);
      expect(command[0]).toBe('pua');
      const settings = Object.fromEntries(
        [.../^data:\n((?: {2}\S.*\n)+)/m.exec(text)![1]!.matchAll(/^ {2}(\w+): "?([^"\n]*)/gm)].map(
          ([, name, value]) => [name!, value!] as const,
        ),
      );
      const database = await createEmptyDatabase();
      const environment = { ...database.environment, ...settings, NODE_ENV: 'production' };
      const servers: ServerProcess[] = [];
      try {
        const pod = async () => {
          const ports = { PORT: String(await freePort()), METRICS_PORT: String(await freePort()) };
          const [code] = (await once(startPua(environment, command.slice(1)), 'close')) as [number];
          expect(code).toBe(0);
          servers.push(await ServerProcess.start({ ...environment, ...ports }));
        };
        await Promise.all([pod(), pod(), pod()]);
        // On a busy host, the first check may exceed the deadlines of production.
        for (const { url } of servers) await until(async () => (await fetch(`${url}/readyz`)).status === 200);
      } finally {
        await Promise.all(servers.map((server) => server.kill('SIGKILL')));
        await database.drop();
      }
    });

    it('permit incoming connections only to the API and metrics ports, and outgoing ones only to the ports that this test lists', () => {
      const policy = all()
        .split(/^---$/m)
        .find((one) => one.includes('kind: NetworkPolicy'))!;
      const [, egress, ingress] = /^ {2}egress:\n([^]*?)^ {2}ingress:\n([^]*?)^ {2}\w/m.exec(policy)!;
      const ports = [...egress!.matchAll(/port: (\d+)/g)].map(([, port]) => Number(port));
      const [, haproxy] = /bind .*:(\d+)"/.exec(readFileSync('deploy/patroni/haproxy.cfg', 'utf8'))!;
      const needed = {
        DNS: [53],
        PostgreSQL: [5432],
        PgBouncer: [6432],
        HAProxy: [Number(haproxy)],
        'mail servers': [25, 465, 587],
        OpenTelemetry: [4317, 4318],
        'webhooks, documents of apps, the platform’s own login': [443],
      };
      expect(new Set(ports)).toEqual(new Set(Object.values(needed).flat()));
      expect([...ingress!.matchAll(/port: (\w+)/g)].map(([, port]) => port)).toEqual(['http', 'metrics']);
    });

    it('spread pods over zones and hosts', () => {
      expect([...all().matchAll(/topologyKey: (.+)/g)].map(([, key]) => key)).toEqual([
        'topology.kubernetes.io/zone',
        'kubernetes.io/hostname',
      ]);
    });

    it('scale by the metric that prometheus-adapter provides, without a fixed number of replicas', () => {
      const { stdout: text } = run('kubectl', 'kustomize', 'deploy/kubernetes-autoscaling');
      const without = all().replace(/^ {2}replicas: 3\n/m, '');
      const objects = text.split(/^---\n/m);
      const added = objects.filter((object) => /^kind: (PodMonitor|HorizontalPodAutoscaler)$/m.test(object));
      expect(objects.filter((object) => !added.includes(object)).map((object) => object.trim())).toEqual(
        without.split(/^---\n/m).map((object) => object.trim()),
      );
      const adapter = readFileSync('deploy/kubernetes-autoscaling/prometheus-adapter.yml', 'utf8');
      const [, metric] = /as: (\w+)/.exec(adapter)!;
      expect(added.join('')).toMatch(new RegExp(`metric:\n +name: ${metric}\n`));
      expect(added.join('')).not.toMatch(/type: Resource/);
      // The PodMonitor scrapes a port of the pods, and its job has the name that the alerts use.
      expect(added.join('')).toMatch(/jobLabel: app\.kubernetes\.io\/name\n/);
      expect(all()).toMatch(/name: metrics\n/);
    });

    it('allow at least 15 s to shut down, and probe /livez and /readyz', () => {
      const text = all();
      const [, seconds] = /terminationGracePeriodSeconds: (\d+)/.exec(text)!;
      expect(Number(seconds)).toBeGreaterThanOrEqual(15); // docs/operators/operations.md
      expect(
        [...text.matchAll(/path: (\/\w+)/g)].map(([, path]) => path!).toSorted((a, b) => a.localeCompare(b)),
      ).toEqual(['/livez', '/livez', '/readyz']);
    });
  });
});
