import type { Example } from '../features/openapi/examples.js';

/** The request to be written. */
interface Sent {
  readonly method: string;
  readonly url: string;
  /** JSON text. */
  readonly body: string | undefined;
  /** Content type of the body. */
  readonly type: string;
  readonly withKey: boolean;
}

/** Writes an example's request in each language, ready to be run with its standard library alone; the key is in API_KEY. */
export function snippetsOf(
  { method, path, body, type = 'application/json' }: Example['request'],
  publicUrl: string,
  withKey: boolean,
) {
  const json = body === undefined ? undefined : JSON.stringify(body);
  const sent: Sent = { method, url: publicUrl + path, body: json, type, withKey };
  return [
    { language: 'curl', title: 'curl', code: curl(sent) },
    { language: 'javascript', title: 'JavaScript', code: javascript(sent) },
    { language: 'python', title: 'Python', code: python(sent) },
    { language: 'go', title: 'Go', code: go(sent) },
    { language: 'php', title: 'PHP', code: php(sent) },
  ];
}

/** Leaves out what this request does not have. */
const those = (...parts: (string | false | undefined)[]) => parts.filter(Boolean);

function curl({ method, url, body, type, withKey }: Sent): string {
  const options = those(
    method !== 'GET' && `-X ${method}`,
    withKey && '-H "X-API-Key: $API_KEY"',
    body && `-H 'Content-Type: ${type}' \\\n  -d '${body}'`,
  );
  return ['curl', ...options, `'${url}'`].join(' \\\n  ').replace(/^curl \\\n {2}/, 'curl ');
}

function javascript({ method, url, body, type, withKey }: Sent): string {
  const headers = those(withKey && `'X-API-Key': process.env.API_KEY`, body && `'Content-Type': '${type}'`);
  const options = those(
    method !== 'GET' && `  method: '${method}',`,
    headers.length > 0 && `  headers: { ${headers.join(', ')} },`,
    body && `  body: JSON.stringify(${body}),`,
  );
  const argument = options.length === 0 ? '' : `, {\n${options.join('\n')}\n}`;
  return `const response = await fetch('${url}'${argument});
console.log(response.status, await response.json());`;
}

function python({ method, url, body, type, withKey }: Sent): string {
  const headers = those(withKey && `"X-API-Key": os.environ["API_KEY"]`, body && `"Content-Type": "${type}"`);
  const options = those(
    `    "${url}",`,
    method !== 'GET' && `    method="${method}",`,
    headers.length > 0 && `    headers={${headers.join(', ')}},`,
    body && `    data=json.dumps(${body}).encode(),`,
  );
  return `import json${withKey ? ', os' : ''}, urllib.request

request = urllib.request.Request(
${options.join('\n')}
)
with urllib.request.urlopen(request) as response:
    print(response.status, json.load(response))`;
}

function go({ method, url, body, type, withKey }: Sent): string {
  const packages = those('fmt', 'io', 'net/http', withKey && 'os', body && 'strings');
  const headers = those(
    withKey && '\trequest.Header.Set("X-API-Key", os.Getenv("API_KEY"))\n',
    body && `\trequest.Header.Set("Content-Type", "${type}")\n`,
  );
  const reader = body === undefined ? 'nil' : `strings.NewReader(\`${body}\`)`;
  return `package main

import (
${packages.map((name) => `\t"${name}"`).join('\n')}
)

func main() {
\trequest, _ := http.NewRequest("${method}", "${url}", ${reader})
${headers.join('')}\tresponse, err := http.DefaultClient.Do(request)
\tif err != nil {
\t\tpanic(err)
\t}
\tdefer response.Body.Close()
\ttext, _ := io.ReadAll(response.Body)
\tfmt.Println(response.StatusCode, string(text))
}`;
}

function php({ method, url, body, type, withKey }: Sent): string {
  const headers = those(withKey && `'X-API-Key: ' . getenv('API_KEY')`, body && `'Content-Type: ${type}'`);
  const options = those(
    method !== 'GET' && `  'method' => '${method}',`,
    headers.length > 0 && `  'header' => [${headers.join(', ')}],`,
    body && `  'content' => '${body}',`,
  );
  const context =
    options.length === 0
      ? ''
      : `$context = stream_context_create(['http' => [\n${options.join('\n')}\n]]);\n`;
  const argument = options.length === 0 ? '' : ', false, $context';
  return `<?php
${context}$response = file_get_contents('${url}'${argument});
print_r(json_decode($response, true));`;
}
