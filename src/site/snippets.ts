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

const LANGUAGES: readonly { language: string; title: string; write: (sent: Sent) => string }[] = [
  { language: 'curl', title: 'curl', write: curl },
  { language: 'javascript', title: 'JavaScript', write: javascript },
  { language: 'python', title: 'Python', write: python },
  { language: 'go', title: 'Go', write: go },
  { language: 'php', title: 'PHP', write: php },
];

/** Writes an example's request in each language, ready to be run with its standard library alone; the key is in API_KEY. */
export function snippetsOf(
  { method, path, body, type = 'application/json' }: Example['request'],
  publicUrl: string,
  withKey: boolean,
) {
  const sent: Sent = {
    method,
    url: publicUrl + path,
    body: body === undefined ? undefined : JSON.stringify(body),
    type,
    withKey,
  };
  return LANGUAGES.map(({ language, title, write }) => ({ language, title, code: write(sent) }));
}

function curl({ method, url, body, type, withKey }: Sent): string {
  const options = [
    ...(method === 'GET' ? [] : [`-X ${method}`]),
    ...(withKey ? ['-H "X-API-Key: $API_KEY"'] : []),
    ...(body === undefined ? [] : [`-H 'Content-Type: ${type}'`, `-d '${body}'`]),
  ];
  return ['curl', ...options, `'${url}'`].join(' \\\n  ').replace(/^curl \\\n {2}/, 'curl ');
}

function javascript({ method, url, body, type, withKey }: Sent): string {
  const headers = [
    ...(withKey ? [`'X-API-Key': process.env.API_KEY`] : []),
    ...(body === undefined ? [] : [`'Content-Type': '${type}'`]),
  ];
  const options = [
    ...(method === 'GET' ? [] : [`  method: '${method}',`]),
    ...(headers.length === 0 ? [] : [`  headers: { ${headers.join(', ')} },`]),
    ...(body === undefined ? [] : [`  body: JSON.stringify(${body}),`]),
  ];
  const argument = options.length === 0 ? '' : `, {\n${options.join('\n')}\n}`;
  return `const response = await fetch('${url}'${argument});
console.log(response.status, await response.json());`;
}

function python({ method, url, body, type, withKey }: Sent): string {
  const headers = [
    ...(withKey ? [`"X-API-Key": os.environ["API_KEY"]`] : []),
    ...(body === undefined ? [] : [`"Content-Type": "${type}"`]),
  ];
  const options = [
    `    "${url}",`,
    ...(method === 'GET' ? [] : [`    method="${method}",`]),
    ...(headers.length === 0 ? [] : [`    headers={${headers.join(', ')}},`]),
    ...(body === undefined ? [] : [`    data=json.dumps(${body}).encode(),`]),
  ];
  return `import json${withKey ? ', os' : ''}, urllib.request

request = urllib.request.Request(
${options.join('\n')}
)
with urllib.request.urlopen(request) as response:
    print(response.status, json.load(response))`;
}

function go({ method, url, body, type, withKey }: Sent): string {
  const packages = [
    'fmt',
    'io',
    'net/http',
    ...(withKey ? ['os'] : []),
    ...(body === undefined ? [] : ['strings']),
  ];
  const headers = [
    ...(withKey ? ['\trequest.Header.Set("X-API-Key", os.Getenv("API_KEY"))'] : []),
    ...(body === undefined ? [] : [`\trequest.Header.Set("Content-Type", "${type}")`]),
  ];
  const reader = body === undefined ? 'nil' : `strings.NewReader(\`${body}\`)`;
  return `package main

import (
${packages.map((name) => `\t"${name}"`).join('\n')}
)

func main() {
\trequest, _ := http.NewRequest("${method}", "${url}", ${reader})
${headers.map((line) => `${line}\n`).join('')}\tresponse, err := http.DefaultClient.Do(request)
\tif err != nil {
\t\tpanic(err)
\t}
\tdefer response.Body.Close()
\ttext, _ := io.ReadAll(response.Body)
\tfmt.Println(response.StatusCode, string(text))
}`;
}

function php({ method, url, body, type, withKey }: Sent): string {
  const headers = [
    ...(withKey ? [`'X-API-Key: ' . getenv('API_KEY')`] : []),
    ...(body === undefined ? [] : [`'Content-Type: ${type}'`]),
  ];
  const options = [
    ...(method === 'GET' ? [] : [`  'method' => '${method}',`]),
    ...(headers.length === 0 ? [] : [`  'header' => [${headers.join(', ')}],`]),
    ...(body === undefined ? [] : [`  'content' => '${body}',`]),
  ];
  const context =
    options.length === 0
      ? ''
      : `$context = stream_context_create(['http' => [\n${options.join('\n')}\n]]);\n`;
  const argument = options.length === 0 ? '' : ', false, $context';
  return `<?php
${context}$response = file_get_contents('${url}'${argument});
print_r(json_decode($response, true));`;
}
