// A client of a model by an SDK of the packages that UWF_AGENTS_BIN is beside: node sdk.mjs SDK URL KEY
// It prints, as JSON: the answer to "hi", whole and streamed, with its usage; the last answer after a
// tool round; what it sees of a call with broken arguments.
import { createRequire } from 'node:module';
const require = createRequire(process.env.UWF_AGENTS_BIN + '/../../sdk.mjs');
const [sdk, url, key] = process.argv.slice(2);
const model = 'main';
const schema = { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } } };
const sum = ({ a, b }) => `sum ${a + b}`;
const result = (id, output) => ({ type: 'function_call_output', call_id: id, output });

async function openai() {
  const { OpenAI } = require('openai');
  const client = new OpenAI({ baseURL: url + '/v1', apiKey: key, maxRetries: 0 });
  const tools = [{ type: 'function', function: { name: 'add', parameters: schema } }];
  const ask = (content, more) => client.chat.completions.create({ model, tools, messages: [{ role: 'user', content }, ...(more ?? [])] });
  const hi = await ask('hi');
  let stream = '';
  for await (const part of await client.chat.completions.create({ model, stream: true, messages: [{ role: 'user', content: 'hi' }] })) stream += part.choices[0]?.delta?.content ?? '';
  const { message } = (await ask('[[call]]')).choices[0];
  const [call] = message.tool_calls;
  const round = await ask('[[call]]', [message, { role: 'tool', tool_call_id: call.id, content: sum(JSON.parse(call.function.arguments)) }]);
  const broken = (await ask('[[broken]]')).choices[0].message.tool_calls[0].function.arguments;
  const u = hi.usage;
  return { chat: hi.choices[0].message.content, stream, usage: [u.prompt_tokens, u.completion_tokens, u.completion_tokens_details.reasoning_tokens], round: round.choices[0].message.content, broken };
}

async function responses() {
  const { OpenAI } = require('openai');
  const client = new OpenAI({ baseURL: url + '/v1', apiKey: key, maxRetries: 0 });
  const tools = [{ type: 'function', name: 'add', parameters: schema, strict: false }];
  const ask = (input, more) => client.responses.create({ model, tools, input, ...more });
  const hi = await ask('hi');
  let stream = '';
  for await (const event of await ask('hi', { stream: true })) if (event.type === 'response.output_text.delta') stream += event.delta;
  const first = await ask('[[call]]');
  const call = first.output.find((item) => item.type === 'function_call');
  const output = result(call.call_id, sum(JSON.parse(call.arguments)));
  const round = await ask([output], { previous_response_id: first.id });
  const references = await ask([{ role: 'user', content: '[[call]]' }, ...first.output.map(({ id }) => ({ type: 'item_reference', id })), output]);
  const unknown = await ask([output], { previous_response_id: 'resp_unknown' }).catch((err) => err.message);
  const broken = (await ask('[[broken]]')).output.find((item) => item.type === 'function_call').arguments;
  return { chat: hi.output_text, stream, usage: [hi.usage.input_tokens, hi.usage.output_tokens, hi.usage.output_tokens_details.reasoning_tokens], round: round.output_text, references: references.output_text, unknown, broken };
}

async function anthropic() {
  const { Anthropic } = require('@anthropic-ai/sdk');
  const client = new Anthropic({ baseURL: url, apiKey: key, maxRetries: 0 });
  const about = { model, max_tokens: 100, tools: [{ name: 'add', input_schema: schema }] };
  const ask = (content, more) => client.messages.create({ ...about, messages: [{ role: 'user', content }, ...(more ?? [])] });
  const text = (message) => message.content.filter((part) => part.type === 'text').map((part) => part.text).join('');
  const called = (message) => message.content.find((part) => part.type === 'tool_use');
  const streamed = (content) => client.messages.stream({ ...about, messages: [{ role: 'user', content }] }).finalMessage();
  const hi = await ask('hi');
  const first = await ask('[[call]]');
  const round = await ask('[[call]]', [{ role: 'assistant', content: first.content }, { role: 'user', content: [{ type: 'tool_result', tool_use_id: called(first).id, content: sum(called(first).input) }] }]);
  const [whole, parts] = [called(await ask('[[broken]]')).input, called(await streamed('[[broken]]')).input];
  return { chat: text(hi), stream: text(await streamed('hi')), usage: [hi.usage.input_tokens + hi.usage.cache_read_input_tokens, hi.usage.output_tokens, hi.usage.output_tokens_details.thinking_tokens], round: text(round), broken: whole, brokenStream: parts };
}

async function google() {
  const { GoogleGenAI } = require('@google/genai');
  const client = new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: url } });
  const config = { tools: [{ functionDeclarations: [{ name: 'add', parametersJsonSchema: schema }] }] };
  const say = (text) => ({ role: 'user', parts: [{ text }] });
  const ask = (text, ...more) => client.models.generateContent({ model, config, contents: [say(text), ...more] });
  const hi = await ask('hi');
  const streamed = async (text) => {
    const all = { text: '', calls: [] };
    for await (const part of await client.models.generateContentStream({ model, config, contents: [say(text)] })) {
      for (const p of part.candidates?.[0]?.content?.parts ?? []) all.text += p.text ?? '';
      all.calls.push(...(part.functionCalls ?? []));
    }
    return all;
  };
  const first = await ask('[[call]]');
  const [call] = first.functionCalls;
  const answer = { functionResponse: { id: call.id, name: call.name, response: { output: sum(call.args) } } };
  const round = await ask('[[call]]', first.candidates[0].content, { role: 'user', parts: [answer] });
  const u = hi.usageMetadata;
  const [whole, parts] = [(await ask('[[broken]]')).functionCalls[0].args, (await streamed('[[broken]]')).calls[0].args];
  return { chat: hi.text, stream: (await streamed('hi')).text, usage: [u.promptTokenCount, u.candidatesTokenCount + u.thoughtsTokenCount, u.thoughtsTokenCount], round: round.text, broken: whole, brokenStream: parts };
}

async function ai(provider) {
  const { generateText, streamText, tool, jsonSchema, stepCountIs } = require('ai');
  const about = (ran) => ({
    model: provider(model), maxRetries: 0, stopWhen: stepCountIs(3),
    tools: { add: tool({ inputSchema: jsonSchema(schema), execute: (input) => { ran?.push(input); return sum(input); } }) },
  });
  const hi = await generateText({ ...about(), prompt: 'hi' });
  const stream = await streamText({ ...about(), prompt: 'hi' }).text;
  const round = await generateText({ ...about(), prompt: '[[call]]' });
  const streamed = await streamText({ ...about(), prompt: '[[call]]' }).text;
  const ran = [];
  const broken = await generateText({ ...about(ran), prompt: '[[broken]]' }).then((all) => all.steps[0].toolCalls[0].input, (err) => err.message);
  const u = hi.usage;
  return { chat: hi.text, stream, usage: [u.inputTokens, u.outputTokens, u.outputTokenDetails?.reasoningTokens], round: round.text, roundStream: streamed, broken, ran };
}

const all = {
  openai, responses, anthropic, google,
  'ai-openai': () => ai(require('@ai-sdk/openai').createOpenAI({ baseURL: url + '/v1', apiKey: key })),
  'ai-anthropic': () => ai(require('@ai-sdk/anthropic').createAnthropic({ baseURL: url + '/v1', apiKey: key })),
  'ai-google': () => ai(require('@ai-sdk/google').createGoogleGenerativeAI({ baseURL: url + '/v1beta', apiKey: key })),
};
console.log(JSON.stringify(await all[sdk]()));
