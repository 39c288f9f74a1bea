// Prints what go test -v said of the agent CLIs as JSON, each row with its day: node result.mjs LOG [BEFORE]
// BEFORE is an earlier result. An agent's rows stay where LOG has none and its version is the same.
import fs from 'node:fs';
const lock = JSON.parse(fs.readFileSync(new URL('package.json', import.meta.url)));
const versions = { ...lock.dependencies, ...lock.optionalDependencies };
const before = process.argv[3] && fs.existsSync(process.argv[3]) ? JSON.parse(fs.readFileSync(process.argv[3])) : {};
const date = new Date().toISOString().slice(0, 10);
const changed = Object.keys(versions).filter((name) => before.versions?.[name] !== versions[name]);
const stays = (agent) => !changed.some((name) => name.startsWith('node-') || name.includes(agent.split('-')[0]));
const agents = Object.fromEntries(Object.entries(before.agents ?? {}).filter(([agent]) => stays(agent)));
const log = fs.readFileSync(process.argv[2], 'utf8');
for (const [, verdict, agent, row] of log.matchAll(/^ *--- (PASS|FAIL|SKIP): (?:TestCLIs|TestOthers)\/([^/ ]+)\/([^ ]+)/gm))
  (agents[agent] ??= {})[row] = `${verdict.toLowerCase()} ${date}`;
for (const [, verdict, agent, wire] of log.matchAll(/^ *--- (PASS|FAIL|SKIP): TestRealAgents\/([^/ ]+?)_by_(\S+)/gm))
  (agents[agent] ??= {})[`issue to pull request, provider speaks ${wire}`] = `${verdict.toLowerCase()} ${date}`;
console.log(JSON.stringify({ platform: `${process.platform} ${process.arch}`, versions, agents }, null, 2));
