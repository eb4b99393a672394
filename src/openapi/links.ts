type Json = Record<string, unknown>;

interface Linked {
  readonly operationId: string;
  readonly parameters: readonly { readonly name: string; readonly in: string }[];
  readonly responses: Readonly<Record<string, Json>>;
}

type Paths = Readonly<Record<string, Readonly<Record<string, Linked>>>>;

/** Adds links from lists to the next page and the first item, and from shared error responses to the meaning of their code. */
export function addLinks(
  paths: Paths,
  schemas: Readonly<Record<string, Json>>,
  shared: Readonly<Record<string, Json>>,
): void {
  for (const [path, { get }] of Object.entries(paths)) {
    const success = get?.responses['200'];
    if (!success) continue;
    const list = listIn(success, schemas);
    if (!list) continue;
    const item = paths[`${path.split('/').slice(0, 4).join('/')}/{id}`]?.get;
    const links = {
      ...nextPage(get, list),
      ...(item && item !== get
        ? { item: linkTo(item.operationId, { id: '$response.body#/data/0/id' }, 'The first item') }
        : {}),
    };
    if (Object.keys(links).length > 0) success.links = links;
  }
  const problem = paths['/api/public/problems/{code}']?.get;
  if (!problem) return;
  const meaning = linkTo(problem.operationId, { code: '$response.body#/code' }, 'The meaning of the code');
  for (const response of Object.values(shared)) if (response.content) response.links = { meaning };
}

/** Links to the next page: the same query with the cursor from the response. Returns no link if the query has no cursor. */
function nextPage({ operationId, parameters }: Linked, properties: Json): Json {
  const cursor = 'pagination' in properties ? 'pagination/next_cursor' : 'next';
  const query = parameters.filter((one) => one.in === 'query').map(({ name }) => name);
  const place = query.find((name) => name === 'cursor' || name === 'after');
  if (place === undefined) return {};
  const same = query.filter((name) => name !== place).map((name) => [name, `$request.query.${name}`]);
  const sent = { [place]: `$response.body#/${cursor}`, ...(Object.fromEntries(same) as Json) };
  return { next: linkTo(operationId, sent, 'The next page') };
}

const linkTo = (operationId: string, parameters: Json, description: string): Json => ({
  operationId,
  parameters,
  description,
});

/** The properties of the response, if it has a list in `data`. */
function listIn({ content }: Json, schemas: Readonly<Record<string, Json>>): Json | undefined {
  const { schema } = (content as Record<string, { schema: { $ref?: string } }>)['application/json']!;
  const { properties } = (schemas[schema.$ref?.split('/').at(-1) ?? ''] ?? {}) as { properties?: Json };
  return properties && 'data' in properties ? properties : undefined;
}
