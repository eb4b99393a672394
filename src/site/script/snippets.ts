/** A request to show as code; its body is a value that is written as JSON. */
export interface SentRequest {
  readonly method: string;
  /** The path with the query. */
  readonly path: string;
  readonly body?: unknown;
  /** Media type of the body; JSON if absent. */
  readonly type?: string;
  /** Headers other than the key and the body's type. */
  readonly headers?: Readonly<Record<string, string>>;
}

interface Sent {
  readonly method: string;
  readonly url: string;
  readonly body: string | undefined;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly withKey: boolean;
}

/** Writes code for the request in each language, using only standard libraries. */
export function writeSnippets(
  { method, path, body, type = 'application/json', headers = {} }: SentRequest,
  publicUrl: string,
  withKey: boolean,
) {
  const json = body === undefined ? undefined : JSON.stringify(body);
  const all = Object.entries(json === undefined ? headers : { ...headers, 'Content-Type': type });
  const sent: Sent = { method, url: publicUrl + path, body: json, headers: all, withKey };
  return [
    { language: 'curl', title: 'curl', code: curl(sent) },
    { language: 'javascript', title: 'JavaScript', code: javascript(sent) },
    { language: 'python', title: 'Python', code: python(sent) },
    { language: 'go', title: 'Go', code: go(sent) },
    { language: 'php', title: 'PHP', code: php(sent) },
  ];
}

const those = (...parts: (string | false | undefined)[]) => parts.filter(Boolean);

/** Quotes a text in single quotes, for JavaScript and PHP. */
const single = (text: string) => `'${text.replaceAll(/[\\']/g, String.raw`\$&`)}'`;

/** Quotes a text in double quotes, for Python and Go, which support the escapes of JSON. */
const double = (text: string) => JSON.stringify(text);

/** Quotes a text for a shell, which interprets nothing in single quotes. */
const shell = (text: string) => `'${text.replaceAll("'", String.raw`'\''`)}'`;

function curl({ method, url, body, headers, withKey }: Sent): string {
  const options = those(
    method !== 'GET' && `-X ${method}`,
    withKey && '-H "X-API-Key: $API_KEY"',
    ...headers.map(([name, value]) => `-H ${shell(`${name}: ${value}`)}`),
    body && `-d ${shell(body)}`,
  );
  return ['curl', ...options, shell(url)].join(' \\\n  ').replace(/^curl \\\n {2}/, 'curl ');
}

function javascript({ method, url, body, headers, withKey }: Sent): string {
  const pairs = those(
    withKey && `'X-API-Key': process.env.API_KEY`,
    ...headers.map(([name, value]) => `'${name}': ${single(value)}`),
  );
  const options = those(
    method !== 'GET' && `  method: '${method}',`,
    pairs.length > 0 && `  headers: { ${pairs.join(', ')} },`,
    body && `  body: JSON.stringify(${body}),`,
  );
  const argument = options.length === 0 ? '' : `, {\n${options.join('\n')}\n}`;
  return `const response = await fetch(${single(url)}${argument});
console.log(response.status, await response.json());`;
}

function writePython(json: string): string {
  const words: Record<string, string> = { true: 'True', false: 'False', null: 'None' };
  return json.replaceAll(/"(?:[^"\\]|\\.)*"|true|false|null/g, (token) => words[token] ?? token);
}

function python({ method, url, body, headers, withKey }: Sent): string {
  const pairs = those(
    withKey && `"X-API-Key": os.environ["API_KEY"]`,
    ...headers.map(([name, value]) => `"${name}": ${double(value)}`),
  );
  const options = those(
    `    ${double(url)},`,
    method !== 'GET' && `    method="${method}",`,
    pairs.length > 0 && `    headers={${pairs.join(', ')}},`,
    body && `    data=json.dumps(${writePython(body)}).encode(),`,
  );
  return `import json${withKey ? ', os' : ''}, urllib.request

request = urllib.request.Request(
${options.join('\n')}
)
with urllib.request.urlopen(request) as response:
    print(response.status, json.load(response))`;
}

function go({ method, url, body, headers, withKey }: Sent): string {
  const packages = those('fmt', 'io', 'net/http', withKey && 'os', body && 'strings');
  const lines = those(
    withKey && '\trequest.Header.Set("X-API-Key", os.Getenv("API_KEY"))\n',
    ...headers.map(([name, value]) => `\trequest.Header.Set("${name}", ${double(value)})\n`),
  );
  const text = body?.includes('`') ? double(body) : `\`${body}\``;
  return `package main

import (
${packages.map((name) => `\t"${name}"`).join('\n')}
)

func main() {
\trequest, _ := http.NewRequest("${method}", ${double(url)}, ${body === undefined ? 'nil' : `strings.NewReader(${text})`})
${lines.join('')}\tresponse, err := http.DefaultClient.Do(request)
\tif err != nil {
\t\tpanic(err)
\t}
\tdefer response.Body.Close()
\ttext, _ := io.ReadAll(response.Body)
\tfmt.Println(response.StatusCode, string(text))
}`;
}

function php({ method, url, body, headers, withKey }: Sent): string {
  const lines = those(
    withKey && `'X-API-Key: ' . getenv('API_KEY')`,
    ...headers.map(([name, value]) => single(`${name}: ${value}`)),
  );
  const options = those(
    method !== 'GET' && `  'method' => '${method}',`,
    lines.length > 0 && `  'header' => [${lines.join(', ')}],`,
    body && `  'content' => ${single(body)},`,
  );
  const context =
    options.length === 0
      ? ''
      : `$context = stream_context_create(['http' => [\n${options.join('\n')}\n]]);\n`;
  const argument = options.length === 0 ? '' : ', false, $context';
  return `<?php
${context}$response = file_get_contents(${single(url)}${argument});
print_r(json_decode($response, true));`;
}
