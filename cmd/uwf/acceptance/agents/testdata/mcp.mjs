// A server or a client of the Model Context Protocol, of the packages that UWF_AGENTS_BIN is beside:
// node mcp.mjs server stateless|reject
// node mcp.mjs client legacy|auto|pinned|sdk URL KEY
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
const require = createRequire(process.env.UWF_AGENTS_BIN + '/../../mcp.mjs');
const [side, mode, url, key] = process.argv.slice(2);

function serve() {
  const { McpServer, createMcpHandler, fromJsonSchema } = require('@modelcontextprotocol/server');
  const inputSchema = fromJsonSchema({ type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } }, required: ['a', 'b'] });
  const handler = createMcpHandler(() => {
    const server = new McpServer({ name: 'real', version: '1' });
    server.registerTool('add', { description: 'Adds.', inputSchema }, async ({ a, b }) => ({ content: [{ type: 'text', text: `sum ${a + b}` }] }));
    return server;
  }, { legacy: mode });
  const http = createServer(async (req, res) => {
    const body = Buffer.concat(await req.toArray());
    const answer = await handler.fetch(new Request('http://localhost' + req.url, { method: req.method, headers: req.headers, body: body.length ? body : undefined }));
    res.writeHead(answer.status, Object.fromEntries(answer.headers));
    res.end(Buffer.from(await answer.arrayBuffer()));
  });
  http.listen(Number(process.env.PORT), '127.0.0.1');
}

async function ask() {
  const about = [{ name: 'agent', version: '1' }];
  const old = mode === 'sdk';
  if (!old) about.push({ versionNegotiation: { mode: mode === 'pinned' ? { pin: '2026-07-28' } : mode } });
  const { Client } = require(old ? '@modelcontextprotocol/sdk/client/index.js' : '@modelcontextprotocol/client');
  const { StreamableHTTPClientTransport } = require(old ? '@modelcontextprotocol/sdk/client/streamableHttp.js' : '@modelcontextprotocol/client');
  const client = new Client(...about);
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { Authorization: 'Bearer ' + key } } }));
  const { tools } = await client.listTools();
  const result = await client.callTool({ name: 'add', arguments: { a: 40, b: 2 } });
  const wrong = await client.callTool({ name: 'drop', arguments: {} }).catch((err) => err.message);
  console.log(JSON.stringify({ version: client.getNegotiatedProtocolVersion?.(), tools: tools.map((tool) => tool.name), result, wrong }));
  await client.close();
}

if (side === 'server') serve();
else await ask();
