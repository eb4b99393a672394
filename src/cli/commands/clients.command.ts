import { Option, type Command } from '@commander-js/extra-typings';
import { ALL_SCOPES } from '../../auth/scopes.js';
import { developedUse } from '../../auth/usage/developed-use.js';
import { UsersService } from '../../accounts/users.service.js';
import { AppTesters } from '../../clients/app-testers.js';
import { writeWhole } from '../../config/draft-file.js';
import { OperatorError } from '../../values/operator-error.js';
import { ClientsService, type ChangeableClient, type ClientChanges } from '../../clients/clients.service.js';
import { secretMethodOf, type AuthMethod } from '../../clients/profiles.js';
import { ClientReviews } from '../../clients/reviews.js';
import { durationBetween, overlapOption, parseName, parseScopes, textArgument } from '../arguments.js';
import {
  appliedAtOption,
  authOption,
  longestAccessOption,
  pkceOption,
  profileOption,
  readFile,
  readKeySet,
} from '../client-options.js';
import { authorizeUrl, CLIENT_COLUMNS, printedClient, printedReview } from '../client-output.js';
import { addTo, changesNothing } from '../command.js';
import { note, table, withDetails } from '../output.js';

/** Columns of a client that are lists, each with the options `--add-…` and `--remove-…`. */
const LISTS = [
  listOptions('redirect_uris', 'redirect-uri <uri...>', 'redirect URIs'),
  listOptions('post_logout_redirect_uris', 'post-logout-redirect-uri <uri...>', 'post-logout redirect URIs'),
  listOptions('allowed_origins', 'origin <origin...>', 'origins of the app’s pages'),
  listOptions('scopes', 'scopes <list>', 'API scopes (comma separated)', parseScopes),
];

function listOptions(
  field: 'redirect_uris' | 'post_logout_redirect_uris' | 'allowed_origins' | 'scopes',
  flags: string,
  what: string,
  parse?: (text: string) => readonly string[],
) {
  const [add, remove] = ['add', 'remove'].map((verb) => {
    const option = new Option(`--${verb}-${flags}`, `${verb} ${what}`);
    return parse ? option.argParser(parse) : option;
  }) as [Option, Option];
  return { field, add, remove };
}

/** Redirect URIs of common assistants: on the member's device, and at claude.ai, chatgpt.com and vscode.dev. */
const OF_ASSISTANTS = [
  'http://localhost/callback',
  'http://127.0.0.1/callback',
  'http://localhost/oauth/callback',
  'http://127.0.0.1/oauth/callback',
  'http://127.0.0.1/',
  'cursor://anysphere.cursor-mcp/oauth/callback',
  'https://claude.ai/api/mcp/auth_callback',
  'https://chatgpt.com/connector_platform_oauth_redirect',
  'https://vscode.dev/redirect',
];

function linesForAssistants(id: string, publicUrl: string): string[] {
  const address = `${publicUrl}/api/public/mcp`;
  return [
    `Claude Code: claude mcp add --transport http --client-id ${id} --callback-port 8123 my-data ${address}`,
    `Claude, ChatGPT: add a connector with the URL ${address} and the OAuth client ID ${id}`,
    `Cursor: in mcp.json, {"url": "${address}", "auth": {"CLIENT_ID": "${id}"}}`,
    `mcp-remote: npx mcp-remote ${address} --static-oauth-client-info '{"client_id":"${id}"}'`,
    `VS Code: MCP: Add Server… → HTTP, ${address}, and ${id} when it asks for a client ID`,
  ];
}

/** Adds `pua clients` and its commands. */
export function clientsCommands(group: Command): void {
  const add = addTo(group);
  const ofApp = (...command: Parameters<typeof add>) =>
    add(...command).argument('<id>', 'client_id of the app');

  add(
    'create',
    'Register an app. stdout has only its client_id and, on the second line, its secret if it has one',
    "pua clients create --name 'Ada’s calendar' --type web --redirect-uri https://calendar.example/callback",
  )
    .requiredOption('--name <text>', 'name of the app on the consent page', parseName)
    .addOption(
      new Option(
        '--type <type>',
        'native: installed on a device, with a custom URL scheme or a loopback port',
      )
        .choices(['web', 'native'])
        .makeOptionMandatory(),
    )
    .requiredOption(
      '--redirect-uri <uri...>',
      'where members return after sign-in; must match exactly (native loopback: any port)',
    )
    .addOption(
      new Option(
        '--assistant',
        'register a native app for common AI assistants (MCP) and print their settings; replaces --type and --redirect-uri',
      ).implies({ type: 'native', redirectUri: OF_ASSISTANTS }),
    )
    .option(
      '--origin <origin...>',
      'origins whose pages may call the token endpoint (default: redirect URI origins of a web app without a secret)',
    )
    .option('--post-logout-redirect-uri <uri...>', 'where members may return after signing out')
    .option(
      '--backchannel-logout-uri <url>',
      'URL that the server notifies of ended sessions (OpenID Connect Back-Channel Logout)',
    )
    .option(
      '--scopes <list>',
      'API scopes that the app may request, comma separated (default: all)',
      parseScopes,
    )
    .option('--jwks-file <file>', 'public keys (JWK set) for private_key_jwt', readKeySet)
    .addOption(profileOption().default('oauth21' as const))
    .addOption(authOption('by default, private_key_jwt with --jwks-file, else none'))
    .addOption(pkceOption())
    .addOption(longestAccessOption(' (default: ACCESS_LONGEST)'))
    .option('--client-uri <url>', 'home page, shown on the consent page')
    .option('--policy-uri <url>', 'privacy policy, shown on the consent page')
    .option(
      '--logo-file <file>',
      'a PNG, JPEG, WebP or GIF of at most 64 KB, shown on the consent page',
      readFile,
    )
    .addOption(
      new Option(
        '--id-token-alg <alg>',
        'algorithm of the app’s ID tokens; RS256 for libraries without ES256',
      )
        .choices(['ES256', 'RS256'])
        .default('ES256'),
    )
    .refuses((options) =>
      options.auth === 'private_key_jwt' && !options.jwksFile ? NEEDS_KEYS : faultOfKeys(options),
    )
    .runs(async ({ config, get, print }, options) => {
      const clients = get(ClientsService);
      const id = await clients.create({
        name: options.name,
        type: options.type,
        redirect_uris: options.redirectUri,
        post_logout_redirect_uris: options.postLogoutRedirectUri,
        allowed_origins: options.origin,
        scopes: options.scopes,
        jwks: options.jwksFile,
        profile: options.profile,
        pkce: options.pkce,
        longest_access: options.longestAccess,
        secret_auth_method: secretMethodOf(options.auth),
        client_uri: options.clientUri,
        policy_uri: options.policyUri,
        logo: options.logoFile,
        id_token_signed_response_alg: options.idTokenAlg,
        backchannel_logout_uri: options.backchannelLogoutUri,
        actor: 'admin',
      });
      const secret = secretMethodOf(options.auth) && (await clients.rotateSecret(id, FIRST_SECRET, 'admin'));
      const client = await clients.find(id);
      print(secret ? { ...client, client_secret: secret } : client, () => (secret ? `${id}\n${secret}` : id));
      if (options.json) return;
      if (options.assistant) for (const line of linesForAssistants(id, config.publicUrl)) note(line);
      else note(`Send members to ${authorizeUrl(client, config.publicUrl)}`);
    });

  add('list', 'List apps, newest first', 'pua clients list --pending')
    .option('--pending', 'only apps whose application waits for a review')
    .runs(async ({ get, print }, { pending }) =>
      print({ data: await get(ClientsService).list(undefined, undefined, pending) }, ({ data }) =>
        table(data, CLIENT_COLUMNS),
      ),
    );

  ofApp('show', 'Show everything about an app', 'pua clients show demo').runs(async ({ get, print }, id) =>
    print(await get(ClientsService).find(id), printedClient),
  );

  const update = ofApp(
    'update',
    'Change an app’s registration. If the app loses scopes, grants that include them end',
    'pua clients update demo --name Calendar --add-redirect-uri https://calendar.example/callback',
  )
    .option('--name <text>', 'name of the app on the consent page', parseName)
    .option(
      '--jwks-file <file>',
      'public keys (JWK set) for private_key_jwt; replaces the previous keys',
      readKeySet,
    )
    .addOption(profileOption())
    .addOption(authOption('the server deletes keys or secrets that this method does not use'))
    .addOption(pkceOption())
    .addOption(longestAccessOption())
    .option('--client-uri <url>', 'home page; "" removes it')
    .option('--policy-uri <url>', 'privacy policy; "" removes it')
    .option('--logo-file <file>', 'a PNG, JPEG, WebP or GIF of at most 64 KB', readFile)
    .addOption(
      new Option('--id-token-alg <alg>', 'algorithm of the app’s ID tokens').choices(['ES256', 'RS256']),
    )
    .option('--backchannel-logout-uri <url>', 'URL that the server notifies of ended sessions; "" removes it')
    .refuses((options) => changesNothing(options) || faultOfKeys(options));
  for (const { add, remove } of LISTS) update.addOption(add).addOption(remove);
  update.runs(async ({ get, print }, id, options) => {
    const auth = options.auth ?? (options.jwksFile && 'private_key_jwt');
    const clients = get(ClientsService);
    const keysOf = (before: ChangeableClient) => {
      const jwks = options.jwksFile ?? before.jwks;
      if (auth === 'private_key_jwt' && jwks === null) throw new OperatorError(NEEDS_KEYS);
      return auth === undefined || auth === 'private_key_jwt' ? jwks : null;
    };
    const changesOf = (before: ChangeableClient): ClientChanges => ({
      ...changedLists(before, options),
      name: options.name ?? before.name,
      jwks: keysOf(before),
      profile: options.profile ?? before.profile,
      pkce: options.pkce ?? before.pkce,
      longest_access: options.longestAccess ?? before.longest_access,
      secret_auth_method: auth === undefined ? before.secret_auth_method : secretMethodOf(auth),
      client_uri: options.clientUri === '' ? null : (options.clientUri ?? before.client_uri),
      policy_uri: options.policyUri === '' ? null : (options.policyUri ?? before.policy_uri),
      logo: options.logoFile ?? before.logo,
      id_token_signed_response_alg: options.idTokenAlg ?? before.id_token_signed_response_alg,
      backchannel_logout_uri:
        options.backchannelLogoutUri === ''
          ? null
          : (options.backchannelLogoutUri ?? before.backchannel_logout_uri),
    });
    const { changed, grants } = await clients.update(id, changesOf, 'admin');
    if (changed.length === 0) note(`${id} already has these values: nothing changed`);
    if (grants > 0) note(endedGrants(grants));
    const client = await clients.find(id);
    if (secretMethodOf(auth) && client.secrets.length === 0)
      note(`Create its secret: \`pua clients rotate-secret ${id}\``);
    print(client, printedClient);
  });

  ofApp(
    'rotate-secret',
    'Create a new secret for an app. The old secret stays valid for a while. stdout contains only the new secret',
    'pua clients rotate-secret backend --overlap 2h',
  )
    .addOption(overlapOption('the old secret stays valid, at most until it expires; 0s: not at all', '90d'))
    .option(
      '--expires <duration>',
      'how long the new secret is valid (default: until it is replaced)',
      durationBetween('1h', '3650d'),
    )
    .runs(async ({ get, print }, id, { overlap, expires }) => {
      const clients = get(ClientsService);
      const lifetime = { overlapSeconds: overlap, expiresInSeconds: expires ?? null };
      const client_secret = await clients.rotateSecret(id, lifetime, 'admin');
      print(await withDetails(clients.find(id), { client_id: id, client_secret }), () => client_secret);
    });

  ofApp(
    'review',
    'Show an app that a member registered: its application, pending changes and request counts of 30 days',
    'pua clients review 5f0c3c0e-3f0e-4b0e-9d0b-0c7f4a1f2b3c',
  )
    .option(
      '--logo-file <file>',
      'write the logo to this file: the new logo, if a change of the logo is pending',
    )
    .runs(async ({ get, print, dataSource }, id, { logoFile, json }) => {
      const clients = get(ClientsService);
      const client = await clients.find(id);
      if (client.owner_id === null)
        throw new OperatorError(`The client ${id} needs no review: no member registered it`);
      if (logoFile !== undefined) {
        const logo = await get(ClientReviews).wantedLogo(id);
        if (!logo) throw new OperatorError(`The client ${id} has no logo: omit --logo-file`);
        writeWhole(logoFile, logo);
      }
      const owner = await get(UsersService).find(String(client.owner_id));
      const testers = await get(AppTesters).list(id);
      const database = {
        rows: <Row>(text: string, values?: unknown[]) => dataSource.query<Row[]>(text, values),
      };
      const requests = await developedUse(database, client.owner_id, id);
      print(
        { ...client, owner: { id: owner.id, username: owner.username }, testers: testers.length, requests },
        printedReview,
      );
      if (client.applied_at !== null && !json)
        note(`Approve this application: \`pua clients approve ${id} --applied-at '${client.applied_at}'\``);
    });

  ofApp(
    'approve',
    'Approve an app’s pending application, so that all members can use the app. The owner gets a notice',
    'pua clients approve 5f0c3c0e-3f0e-4b0e-9d0b-0c7f4a1f2b3c --scopes profile:read',
  )
    .option(
      '--scopes <list>',
      'approve only these scopes, comma separated (default: all requested scopes)',
      parseScopes,
    )
    .addOption(appliedAtOption())
    .runs(async ({ get, print }, id, { scopes, appliedAt }) => {
      const clients = get(ClientsService);
      const grants = await get(ClientReviews).review(id, { approved: true, scopes }, appliedAt);
      if (grants > 0) note(endedGrants(grants));
      print(await clients.find(id), printedClient);
    });

  ofApp(
    'reject',
    'Reject an app’s pending application. The owner gets a notice and sees the reason',
    "pua clients reject 5f0c3c0e-3f0e-4b0e-9d0b-0c7f4a1f2b3c --reason 'The privacy policy names no contact.'",
  )
    .requiredOption('--reason <text>', 'reason, which the owner sees', textArgument([1, 500]))
    .addOption(appliedAtOption())
    .runs(async ({ get, print }, id, { reason, appliedAt }) => {
      const clients = get(ClientsService);
      await get(ClientReviews).review(id, { rejection: reason }, appliedAt);
      print(await clients.find(id), printedClient);
    });

  ofApp(
    'delete',
    'Delete an app permanently, with all its grants',
    'pua clients delete old-app --yes',
    'any version',
  )
    .option('--yes', 'skip the confirmation')
    .runs(async ({ get, print, confirm }, id) => {
      const clients = get(ClientsService);
      const { name, live_grants_count } = await clients.find(id);
      await confirm(
        `${name} (${id}) would be deleted permanently, and ${live_grants_count} grants of members would end.`,
      );
      const grants = await clients.delete(id, 'admin');
      print({ client_id: id, deleted: true, grants }, () => `${id} is deleted`);
    });

  for (const [verb, accepted, description] of [
    ['disable', 'any version', 'Reject an app and its tokens until it is enabled again'],
    ['enable', 'this version', 'Enable a disabled app again'],
  ] as const)
    ofApp(verb, description, `pua clients ${verb} demo`, accepted).runs(async ({ get, print }, id) => {
      const clients = get(ClientsService);
      const changed = await clients.setDisabled(id, verb === 'disable', 'admin');
      const { disabled_at } = await clients.find(id);
      if (!changed) note(`${id} was already ${verb}d: nothing changed`);
      print({ client_id: id, changed, disabled_at }, () => `${id} is ${verb}d`);
    });
}

const endedGrants = (grants: number) =>
  `${grants} ${grants === 1 ? 'grant that included a removed scope has' : 'grants that included a removed scope have'} ended`;

const FIRST_SECRET = { overlapSeconds: 0, expiresInSeconds: null };

const NEEDS_KEYS = '--auth private_key_jwt requires --jwks-file';

const faultOfKeys = ({ auth, jwksFile }: { auth?: AuthMethod; jwksFile?: object }): string | false =>
  auth !== undefined &&
  auth !== 'private_key_jwt' &&
  jwksFile !== undefined &&
  '--jwks-file is only for --auth private_key_jwt';

/** @param options the options of {@link LISTS}: `addOrigin`, `removeOrigin`, … */
function changedLists(
  before: ChangeableClient,
  options: Readonly<Record<string, unknown>>,
): Pick<ClientChanges, (typeof LISTS)[number]['field']> {
  const valuesOf = (option: Option) => (options[option.attributeName()] ?? []) as string[];
  const lists = LISTS.map(({ field, add, remove }) => {
    const [added, removed] = [valuesOf(add), valuesOf(remove)];
    const missing = removed.find((value) => !before[field].includes(value));
    if (missing !== undefined) throw new OperatorError(`${missing} is not registered: nothing was changed`);
    const kept = before[field].filter((value) => !removed.includes(value));
    const all = [...new Set([...kept, ...added])];
    return [field, field === 'scopes' ? ALL_SCOPES.filter((scope) => all.includes(scope)) : all] as const;
  });
  return Object.fromEntries(lists);
}
