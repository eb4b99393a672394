import { readFileSync } from 'node:fs';
import { InvalidArgumentError, Option } from 'commander';
import type { Command } from 'commander';
import type { Scope } from '../../auth/scopes.js';
import { ClientsService } from '../../oauth/admin/clients.service.js';
import type { ClientDetails } from '../../oauth/admin/clients.service.js';
import type { SigningAlgorithm } from '../../crypto/signing-keys.js';
import { parseScopes, textOf } from '../arguments.js';
import { addCommand, addGroup } from '../command.js';
import { withDatabase, withDatabaseOfAnyVersion } from '../database.js';
import { fields, note, print, table } from '../output.js';

interface CreateOptions {
  name: string;
  type: 'web' | 'native';
  redirectUri: string[];
  origin?: string[];
  postLogoutRedirectUri?: string[];
  scopes?: Scope[];
  jwksFile?: { keys: Record<string, unknown>[] };
  clientUri?: string;
  policyUri?: string;
  logoFile?: Buffer;
  idTokenAlg: SigningAlgorithm;
  json?: boolean;
}

export function clientsCommands(program: Command): void {
  const clients = addGroup(program, 'clients', 'Apps that sign members in with OAuth');

  addCommand(
    clients,
    'create',
    'Register an app. stdout has its client_id alone',
    "pua clients create --name 'Ada’s calendar' --type web --redirect-uri https://calendar.example/callback",
  )
    .requiredOption('--name <text>', 'what consent calls the app', textOf([1, 100]))
    .addOption(
      new Option(
        '--type <type>',
        'native: installed on a device, with a scheme of its own or a loopback port',
      )
        .choices(['web', 'native'])
        .makeOptionMandatory(),
    )
    .requiredOption('--redirect-uri <uri...>', 'where members come back to; compared to the letter')
    .option('--origin <origin...>', 'pages of these origins may call the token endpoint')
    .option('--post-logout-redirect-uri <uri...>', 'where members may come back to after signing out')
    .option(
      '--scopes <list>',
      'what it may ask of the API, comma separated (default: everything)',
      parseScopes,
    )
    .option(
      '--jwks-file <file>',
      'public keys (JWK set): the app signs itself in with private_key_jwt',
      readKeySet,
    )
    .option('--client-uri <url>', 'the app’s own page, shown when a member is asked')
    .option('--policy-uri <url>', 'its page on what it does with members’ data, shown there too')
    .option('--logo-file <file>', 'a PNG, JPEG, WebP or GIF of 64 KB at most, shown there too', readFile)
    .addOption(
      new Option(
        '--id-token-alg <alg>',
        'what its ID tokens are signed with; RS256 for libraries without ES256',
      )
        .choices(['ES256', 'RS256'])
        .default('ES256'),
    )
    .action(async (options: CreateOptions) => {
      const client = await withDatabase(async ({ config, dataSource }) => {
        const clients = new ClientsService(dataSource, config);
        const id = await clients.create({
          name: options.name,
          type: options.type,
          redirectUris: options.redirectUri,
          postLogoutRedirectUris: options.postLogoutRedirectUri,
          allowedOrigins: options.origin,
          scopes: options.scopes,
          jwks: options.jwksFile,
          clientUri: options.clientUri,
          policyUri: options.policyUri,
          logo: options.logoFile,
          idTokenAlg: options.idTokenAlg,
          actor: 'admin',
        });
        return clients.find(id);
      });
      print(options.json, client, () => client.client_id);
    });

  addCommand(clients, 'list', 'List the apps, the newest first', 'pua clients list').action(
    async ({ json }: { json?: boolean }) => {
      const found = await withDatabase(({ config, dataSource }) =>
        new ClientsService(dataSource, config).list(),
      );
      print(json, { data: found }, () => table(found, COLUMNS));
    },
  );

  addCommand(clients, 'show', 'Show all that is known of an app', 'pua clients show demo')
    .argument('<id>', 'its client_id')
    .action(async (id: string, { json }: { json?: boolean }) => {
      const client = await withDatabase(({ config, dataSource }) =>
        new ClientsService(dataSource, config).find(id),
      );
      print(json, client, () => fields(client));
    });

  addCommand(
    clients,
    'disable',
    'Refuse an app everywhere, its tokens too, until it is enabled again',
    'pua clients disable demo',
  )
    .argument('<id>', 'its client_id')
    .action((id: string, { json }: { json?: boolean }) => change(id, true, json));

  addCommand(clients, 'enable', 'Undo disable', 'pua clients enable demo')
    .argument('<id>', 'its client_id')
    .action((id: string, { json }: { json?: boolean }) => change(id, false, json));
}

const COLUMNS: Record<string, (client: ClientDetails) => string | number | readonly string[]> = {
  ID: ({ client_id }) => client_id,
  NAME: ({ name }) => name,
  TYPE: ({ type }) => type,
  AUTHENTICATION: ({ token_endpoint_auth_method }) => token_endpoint_auth_method,
  SCOPES: ({ scopes }) => scopes,
  STATUS: ({ disabled_at }) => (disabled_at === null ? 'enabled' : 'disabled'),
  GRANTS: ({ live_grants_count }) => live_grants_count,
};

async function change(id: string, disabled: boolean, json: boolean | undefined): Promise<void> {
  const reach = disabled ? withDatabaseOfAnyVersion : withDatabase;
  const { changed, client } = await reach(async ({ config, dataSource }) => {
    const clients = new ClientsService(dataSource, config);
    const changed = await clients.setDisabled(id, disabled, 'admin');
    return { changed, client: await clients.find(id) };
  });
  const state = disabled ? 'disabled' : 'enabled';
  if (!changed) note(`${id} was ${state} before: nothing changed`);
  print(json, { client_id: id, changed, disabled_at: client.disabled_at }, () => `${id} is ${state}`);
}

function readFile(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new InvalidArgumentError(`It cannot be read (${(error as NodeJS.ErrnoException).code}).`);
  }
}

function readKeySet(file: string): { keys: Record<string, unknown>[] } {
  const text = readFile(file).toString();
  try {
    return JSON.parse(text) as { keys: Record<string, unknown>[] };
  } catch {
    throw new InvalidArgumentError('It must hold a JWK set: {"keys": […]}.');
  }
}
