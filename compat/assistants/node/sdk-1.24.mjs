process.env.SDK = '@modelcontextprotocol/sdk-1.24';
await import('./sdk.mjs');
