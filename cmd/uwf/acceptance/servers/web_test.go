package servers

import (
	"os/user"
	"path/filepath"
	"strings"
)

// fcgiwrap starts the program that runs git's http-backend for servers that speak FastCGI. It
// returns its socket.
func (l *lab) fcgiwrap() string {
	socket := filepath.Join(l.dir, "cgi.sock")
	l.daemon(socket, nil, "fcgiwrap", "-s", "unix:"+socket)
	l.check(chmodAll(socket))
	return socket
}

// account is who runs the test: servers that give up root are told to stay.
func (l *lab) account() string {
	u, err := user.Current()
	l.check(err)
	return u.Username
}

// web starts a web server by a configuration and returns how it is reached.
func (l *lab) web(program, config string, words []string, args ...string) access {
	port := l.freePort()
	words = append(words, "%PORT%", port, "%DIR%", l.dir, "%ROOT%", l.root, "%USER%", l.account(), "%BACKEND%", l.backendProgram())
	file := l.file(program+".conf", config, words...)
	fill := strings.NewReplacer("%CONFIG%", file, "%PORT%", port)
	filled := make([]string, len(args))
	for i, arg := range args {
		filled[i] = fill.Replace(arg)
	}
	l.daemon("127.0.0.1:"+port, nil, program, filled...)
	return access{url: "http://127.0.0.1:" + port + "/r.git"}
}

const nginxConfig = `daemon off;
user %USER%;
worker_processes 1;
pid %DIR%/nginx.pid;
error_log stderr;
events {}
http {
	access_log off;
	client_body_temp_path %DIR%/body;
	fastcgi_temp_path %DIR%/fastcgi;
	proxy_temp_path %DIR%/proxy;
	scgi_temp_path %DIR%/scgi;
	uwsgi_temp_path %DIR%/uwsgi;
	client_max_body_size %MOST%;
	server {
		listen 127.0.0.1:%PORT%;
		location / {
			fastcgi_pass unix:%SOCKET%;
			fastcgi_param SCRIPT_FILENAME %BACKEND%;
			fastcgi_param PATH_INFO $uri;
			fastcgi_param QUERY_STRING $query_string;
			fastcgi_param REQUEST_METHOD $request_method;
			fastcgi_param CONTENT_TYPE $content_type;
			fastcgi_param CONTENT_LENGTH $content_length;
			fastcgi_param HTTP_CONTENT_ENCODING $http_content_encoding;
			fastcgi_param HTTP_GIT_PROTOCOL $http_git_protocol;
			fastcgi_param GIT_PROJECT_ROOT %ROOT%;
			fastcgi_param GIT_HTTP_EXPORT_ALL "";
			fastcgi_param REMOTE_USER someone;
		}
	}
}
`

// serveNginx serves by nginx, which takes bodies up to a size.
func serveNginx(most string) func(*lab) access {
	return func(l *lab) access {
		return l.web("nginx", nginxConfig, []string{"%SOCKET%", l.fcgiwrap(), "%MOST%", most}, "-c", "%CONFIG%", "-p", l.dir)
	}
}

const lighttpdConfig = `server.document-root = "%ROOT%"
server.bind = "127.0.0.1"
server.port = %PORT%
server.modules = ("mod_alias", "mod_cgi", "mod_setenv")
alias.url = ("/" => "%BACKEND%/")
cgi.assign = ("" => "")
setenv.set-environment = ("GIT_PROJECT_ROOT" => "%ROOT%", "GIT_HTTP_EXPORT_ALL" => "", "REMOTE_USER" => "someone")
`

func serveLighttpd(l *lab) access {
	return l.web("lighttpd", lighttpdConfig, nil, "-D", "-f", "%CONFIG%")
}

const apacheConfig = `ServerRoot %DIR%
ServerName localhost
Listen 127.0.0.1:%PORT%
PidFile %DIR%/apache.pid
DefaultRuntimeDir %DIR%
ErrorLog %DIR%/apache2-error.log
LoadModule mpm_prefork_module %MODULES%/mod_mpm_prefork.so
LoadModule authz_core_module %MODULES%/mod_authz_core.so
LoadModule alias_module %MODULES%/mod_alias.so
LoadModule env_module %MODULES%/mod_env.so
LoadModule cgi_module %MODULES%/mod_cgi.so
User www-data
Group www-data
SetEnv GIT_PROJECT_ROOT %ROOT%
SetEnv GIT_HTTP_EXPORT_ALL
SetEnv REMOTE_USER someone
SetEnv GIT_CONFIG_COUNT 1
SetEnv GIT_CONFIG_KEY_0 safe.directory
SetEnv GIT_CONFIG_VALUE_0 *
ScriptAlias / %BACKEND%/
<Directory />
	Require all granted
</Directory>
`

const apacheModules = "/usr/lib/apache2/modules"

func serveApache(l *lab) access {
	l.openRepository()
	return l.web("apache2", apacheConfig, []string{"%MODULES%", apacheModules}, "-f", "%CONFIG%", "-DFOREGROUND")
}

const caddyConfig = `{
	admin off
	auto_https off
	storage file_system %DIR%/caddy
}
http://127.0.0.1:%PORT% {
	reverse_proxy unix/%SOCKET% {
		transport fastcgi {
			env SCRIPT_FILENAME %BACKEND%
			env GIT_PROJECT_ROOT %ROOT%
			env GIT_HTTP_EXPORT_ALL 1
			env REMOTE_USER someone
			env PATH_INFO {path}
		}
	}
}
`

func serveCaddy(l *lab) access {
	return l.web("caddy", caddyConfig, []string{"%SOCKET%", l.fcgiwrap()}, "run", "--adapter", "caddyfile", "--config", "%CONFIG%")
}

// webServerRows are git's http-backend behind the servers that Debian has.
func webServerRows() []row {
	rows := []row{
		{name: "nginx and fcgiwrap", needs: []string{"nginx", "fcgiwrap"}, version: []string{"nginx", "-v"}, serve: serveNginx("0")},
		{name: "nginx, client_max_body_size is too small", needs: []string{"nginx", "fcgiwrap"}, version: []string{"nginx", "-v"}, serve: serveNginx("2k"), says: refusedAtStart("413")},
		{name: "lighttpd", needs: []string{"lighttpd"}, version: []string{"lighttpd", "-v"}, serve: serveLighttpd},
		{name: "apache", needs: []string{"apache2", apacheModules}, version: []string{"apache2", "-v"}, serve: serveApache},
		{name: "caddy and fcgiwrap", needs: []string{"caddy", "fcgiwrap"}, version: []string{"caddy", "version"}, serve: serveCaddy},
	}
	for i := range rows {
		rows[i].needs = append(rows[i].needs, "git")
		rows[i].config = append(rows[i].config, "http.receivepack", "true")
	}
	return rows
}
