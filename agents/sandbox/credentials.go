package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/internal/lazyregexp"
	"github.com/united-workforce/uwf/internal/regular"
)

// credentialPlaces are files and folders below the user's home that hold what logs in
// somewhere, or the state of programs that do. No variable of a toolchain opens one,
// nor a folder around it but in parts, whether it exists already or not.
var credentialPlaces = [...]string{
	// Logins to machines, and keys.
	".ssh", ".gnupg", ".pki", ".password-store", ".netrc", "_netrc", ".authinfo", ".authinfo.gpg", ".vault-token", ".age", ".config/age", ".config/sops",
	// Git and its forges.
	".git-credentials", ".config/git/credentials", ".config/gh", ".config/hub", ".config/glab-cli", ".config/tea", ".config/git-credential-manager", ".gcm",
	// Clouds, clusters and registries of images.
	".aws", ".azure", ".config/gcloud", ".boto", ".s3cfg", ".oci", ".aliyun", ".bluemix", ".config/doctl", ".config/hcloud", ".config/linode-cli", ".config/scw",
	".config/rclone", ".kube", ".docker", ".config/containers", ".config/helm", ".config/fly", ".fly/config.yml", ".netlify", ".config/netlify", ".local/share/com.vercel.cli",
	".wrangler", ".config/.wrangler", ".terraformrc", ".terraform.d/credentials.tfrc.json", ".pulumi/credentials.json", ".databrickscfg", ".snowflake", ".config/snowflake",
	// Registries of packages.
	".npmrc", ".yarnrc", ".yarnrc.yml", ".config/pnpm", ".bunfig.toml", ".config/.bunfig.toml",
	".pypirc", ".pip", ".config/pip", ".config/pypoetry", ".local/share/uv/credentials", ".config/uv", ".condarc", ".continuum", ".config/binstar",
	".gem/credentials", ".local/share/gem/credentials", ".gemrc", ".bundle/config",
	".cargo/credentials", ".cargo/credentials.toml", ".cargo/config", ".cargo/config.toml",
	".m2/settings.xml", ".m2/settings-security.xml", ".m2/settings-security4.xml", ".m2/toolchains.xml", ".gradle/gradle.properties", ".gradle/init.gradle", ".gradle/init.gradle.kts",
	".gradle/init.d", ".gradle/enterprise", ".gradle/develocity", ".sbt/.credentials", ".ivy2/.credentials", ".lein/credentials.clj.gpg", ".lein/profiles.clj",
	".nuget/NuGet", ".config/NuGet", ".composer/auth.json", ".config/composer/auth.json", ".hex/hex.config", ".pub-cache/credentials.json", ".config/dart",
	".android/adbkey", ".android/debug.keystore",
	// Databases.
	".pgpass", ".pg_service.conf", ".my.cnf", ".mylogin.cnf", ".mongodb", ".redisclirc",
	// macOS.
	"Library/Keychains", "Library/Cookies", "Library/Safari", "Library/Mail", "Library/Messages", "Library/Containers", "Library/Group Containers",
	"Library/Preferences", "Library/Application Support/Google/Chrome", "Library/Application Support/Firefox",
	// Models and agents.
	".claude.json", ".claude/.credentials.json", ".codex/auth.json", ".gemini/oauth_creds.json", ".gemini/.env", ".qwen/oauth_creds.json", ".copilot", ".config/github-copilot",
	".local/share/opencode/auth.json", ".config/openai", ".config/anthropic", ".cache/huggingface/token", ".huggingface", ".kaggle", ".config/kaggle", ".uwf",
	// What people type, and what their desktops and browsers remember.
	".bash_history", ".zsh_history", ".python_history", ".node_repl_history", ".local/share/keyrings", ".local/share/kwalletd", ".config/op", ".config/1Password", ".config/Bitwarden CLI",
	".mozilla", ".config/google-chrome", ".config/chromium", ".config/BraveSoftware", ".config/microsoft-edge", ".thunderbird", ".config/Code", ".config/Slack",
}

// sharedFolders below the user's home are of many programs. Like the home itself they
// are never opened as a whole; a toolchain's folder in them is.
var sharedFolders = [...]string{".config", ".local", ".local/share", ".local/state", ".cache", ".var", ".var/app", "snap", "Library", "Library/Application Support", "Library/Caches"}

// credentialVariables name credentials, or folders of them, that lie elsewhere. Several
// may stand in one, separated by colons.
var credentialVariables = [...]string{
	"AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_WEB_IDENTITY_TOKEN_FILE", "AZURE_CONFIG_DIR", "AZURE_FEDERATED_TOKEN_FILE", "CLOUDSDK_CONFIG",
	"GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_GHA_CREDS_PATH", "KUBECONFIG", "DOCKER_CONFIG", "DOCKER_CERT_PATH", "REGISTRY_AUTH_FILE", "GNUPGHOME", "PASSWORD_STORE_DIR",
	"GH_CONFIG_DIR", "GLAB_CONFIG_DIR", "NETRC", "NPM_CONFIG_USERCONFIG", "npm_config_userconfig", "NPM_CONFIG_GLOBALCONFIG", "npm_config_globalconfig",
	"PIP_CONFIG_FILE", "UV_CREDENTIALS_DIR", "CONDARC", "GEMRC", "BUNDLE_USER_CONFIG", "TF_CLI_CONFIG_FILE", "PGPASSFILE", "PGSERVICEFILE", "HF_TOKEN_PATH",
	"KAGGLE_CONFIG_DIR", "CLAUDE_CONFIG_DIR",
}

// movedHomes are variables that move a tool's folder, and what in it is a credential.
var movedHomes = map[string][]string{
	"BUNDLE_USER_HOME":  {"config"},
	"BUNDLE_APP_CONFIG": {"config"},
	"CARGO_HOME":        {"credentials", "credentials.toml", "config", "config.toml"},
	"CODEX_HOME":        {"auth.json"},
	"COMPOSER_HOME":     {"auth.json"},
	"GRADLE_USER_HOME":  {"gradle.properties", "init.gradle", "init.gradle.kts", "init.d", "enterprise", "develocity"},
	"HF_HOME":           {"token"},
	"PULUMI_HOME":       {"credentials.json"},
}

// tellingNames are what credentials are called at the top of a toolchain's folder,
// wherever that lies.
var tellingNames = [...]string{
	"credentials", "credentials.toml", "credentials.json", ".credentials", "auth.json", ".npmrc", ".yarnrc.yml", ".netrc", ".pypirc", ".git-credentials", ".condarc", "pip.conf",
	"settings.xml", "settings-security.xml", "settings-security4.xml", "gradle.properties", "etc/npmrc", ".env",
}

// findCredentials are the places of credentials by the environment, and those
// at the top of folders of toolchains. None of them is resolved.
func (o Options) findCredentials(toolchains []string) []string {
	environ := o.Environ
	var out []string
	for _, home := range homeFolders(environ) {
		for _, place := range credentialPlaces {
			// The folder may be a link, also where the file is not there yet.
			dir, name := filepath.Split(filepath.Join(home, place))
			out = append(out, filepath.Join(resolvePath(dir), name))
		}
	}
	for name, usual := range map[string]string{"XDG_CONFIG_HOME": ".config/", "XDG_DATA_HOME": ".local/share/", "XDG_CACHE_HOME": ".cache/"} {
		for _, place := range credentialPlaces {
			if rest, ok := strings.CutPrefix(place, usual); ok {
				out = append(out, filepath.Join(Getenv(environ, name), rest))
			}
		}
	}
	// Of these, what is not there would only take folders of the system apart.
	for _, name := range credentialVariables {
		out = append(out, slices.DeleteFunc(filepath.SplitList(Getenv(environ, name)), func(p string) bool { return !pathExists(p) })...)
	}
	for name, files := range movedHomes {
		for _, file := range files {
			if place := filepath.Join(Getenv(environ, name), file); pathExists(place) {
				out = append(out, place)
			}
		}
	}
	for _, dir := range findToolFolders(environ) {
		out = append(out, o.nested.findIn(dir)...)
	}
	for _, dir := range toolchains {
		for _, name := range tellingNames {
			if place := filepath.Join(dir, name); pathExists(place) && !isDir(place) && !isPlain(place) { // a folder may be a package of that name
				out = append(out, place)
			}
		}
	}
	return out
}

// plainLine is a line of settings that holds no secret: a switch, the address of a server, or a path
// if there is such a file.
var plainLine = lazyregexp.New(`^(\[[a-z]+\]|[a-z][a-z-]*\s*=\s*(true|false|https?://[a-z.-]+(:\d+)?/?|(/[^\s=]+)))?$`)

// isPlain reports whether a file holds such lines only. Tools that look for it fail if it is there
// and closed, and lack its settings.
func isPlain(file string) bool {
	root, err := os.OpenRoot(filepath.Dir(file))
	if err != nil {
		return false
	}
	defer func() { _ = root.Close() }()
	text, err := regular.Read(root, filepath.Base(file), maxChoice)
	for line := range strings.Lines(string(text)) {
		found := plainLine.FindStringSubmatch(strings.TrimSpace(line))
		if found == nil || found[4] != "" && !pathExists(found[4]) {
			return false
		}
	}
	return err == nil
}

// homeFolders are the folders that programs take for the user's home: what HOME says, and
// root's own, where a container's is another one.
func homeFolders(environ []string) []string {
	out := []string{"/root"}
	if home := Getenv(environ, "HOME"); filepath.IsAbs(home) && resolvePath(home) != "/" {
		out = append(out, home)
	}
	return out
}
