// Serves the repositories of a folder by one of npm's git servers, for .ci/run servers.
// Usage: node npm.cjs node-git-server|pushover|git-http-backend PORT FOLDER
'use strict'
const http = require('node:http')
const path = require('node:path')
const zlib = require('node:zlib')
const { spawn } = require('node:child_process')

const [kind, port, folder] = process.argv.slice(2)

// acceptAll lets everybody fetch and push.
function acceptAll (repos) {
  repos.on('push', push => push.accept())
  repos.on('fetch', fetch => fetch.accept())
  return (request, response) => repos.handle(request, response)
}

const handlers = {
  'node-git-server': () => acceptAll(new (require('node-git-server').Git)(folder, { autoCreate: false })),
  pushover: () => acceptAll(require('pushover')(folder, { autoCreate: false })),
  // As its page has it.
  'git-http-backend': () => {
    const backend = require('git-http-backend')
    return (request, response) => {
      const dir = path.join(folder, request.url.split('/')[1])
      const body = request.headers['content-encoding'] === 'gzip' ? request.pipe(zlib.createGunzip()) : request
      body.pipe(backend(request.url, (err, service) => {
        if (err) return response.end(err + '\n')
        response.setHeader('content-type', service.type)
        const git = spawn(service.cmd, service.args.concat(dir))
        git.stdout.pipe(service.createStream()).pipe(git.stdin)
      })).pipe(response)
    }
  }
}

http.createServer(handlers[kind]()).listen(Number(port), '127.0.0.1')
