// Writes what jsonata and liquidjs answer to the corpora of conditions and templates
// beside those. Run it in this folder: npm ci && node record.mjs
import { readFileSync, writeFileSync } from 'node:fs'
import jsonata from 'jsonata'
import { Liquid } from 'liquidjs'

const liquid = new Liquid()

// The predecessor's functions over the outputs of a role.
async function holds (source, input) {
  const outputs = role => input.steps.filter(step => step.role === role).map(step => step.output)
  const expression = jsonata(source)
  expression.registerFunction('first', role => outputs(role)[0])
  expression.registerFunction('last', role => outputs(role).at(-1))
  return Boolean(await expression.evaluate(input))
}

async function record (folder, answer) {
  const { input, cases } = JSON.parse(readFileSync(`${folder}/corpus.json`, 'utf8'))
  const answers = {}
  for (const source of cases) {
    try {
      answers[source] = { answer: await answer(source, structuredClone(input)) }
    } catch (error) {
      answers[source] = { error: String(error.code ?? error.message).split('\n')[0] }
    }
  }
  const lines = cases.map(source => `  ${JSON.stringify(source)}: ${JSON.stringify(answers[source])}`)
  writeFileSync(`${folder}/answers.json`, `{\n${lines.join(',\n')}\n}\n`)
}

const workflow = new URL('../../../engine/workflow/', import.meta.url).pathname
const which = process.argv[2]
if (which !== 'liquid') await record(workflow + 'condition/testdata', holds)
if (which !== 'condition') await record(workflow + 'liquid/testdata', (source, input) => liquid.parseAndRender(source, input))
