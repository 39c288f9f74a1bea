package redact

import "strings"

const (
	maxToken = 1 << 10  // bytes of one token found by its shape
	maxJWT   = 16 << 10 // bytes of one JSON Web Token
	maxPEM   = 64 << 10 // bytes of one private key with its last line
	// maxPEMHead is in how many bytes behind its title the characters of a key begin.
	maxPEMHead = 512
	pemEnd     = "-----END "
	// maxPlaceholder is the length in bytes of the longest placeholder that is known by
	// its words.
	maxPlaceholder = 100
)

// shape is a kind of secret known by how it looks. Its prefixes are found by the
// index; match decides what follows one.
type shape struct {
	name     string
	kind     kind
	prefixes []string
	match    matcher
}

// matcher decides about a prefix of n bytes at b[at].
type matcher func(b []byte, at, n int) verdict

// verdict: the secret is b[from:to]; more: b ended before that was certain.
type verdict struct {
	from, to int
	ok, more bool
}

// builtinShapes is the table. Lengths are lower bounds below the real ones, since
// issuers lengthen their tokens.
func builtinShapes() []shape {
	wordStart, dashStart := check{start: noWordBefore}, check{start: noDashBefore}
	digits, random := check{token: hasDigit}, check{token: tokenLike}
	t := func(name, prefixes string, least int, class func(byte) bool, checks ...check) shape {
		return shape{name: name, kind: token, prefixes: strings.Fields(prefixes), match: tokenMatch(least, class, checks)}
	}
	return []shape{
		t("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", 30, wordChar),
		t("github-token", "github_pat_", 40, wordChar),
		t("gitlab-token", "glpat- gldt- glrt- glcbt- glptt- glft- glimt- glagent- gloas- glsoat- glffct-", 20, dashChar),
		t("aws-access-key", "AKIA ASIA ABIA ACCA", 16, upperDigit, wordStart, lengthIs(20), check{token: noExample}),
		{name: "aws-secret-key", kind: token, match: awsSecret, prefixes: []string{
			"ecret_access_key", "ECRET_ACCESS_KEY", "ecretAccessKey"}},
		t("google-api-key", "AIza", 35, dashChar, wordStart),
		t("google-oauth", "GOCSPX-", 20, dashChar),
		t("google-oauth", "ya29.", 30, dashChar, wordStart),
		t("slack-token", "xoxa- xoxb- xoxc- xoxd- xoxe- xoxo- xoxp- xoxr- xoxs- xapp-", 10, slackChar, digits),
		t("slack-webhook", "hooks.slack.com/services/", 20, pathChar),
		t("discord-webhook", "discord.com/api/webhooks/ discordapp.com/api/webhooks/", 40, pathChar),
		t("anthropic-key", "sk-ant-", 20, dashChar, random),
		t("openai-key", "sk-", 20, dashChar, dashStart, random),
		t("stripe-key", "sk_live_ sk_test_ rk_live_ rk_test_", 16, wordChar),
		t("webhook-secret", "whsec_", 24, base64Std),
		t("npm-token", "npm_", 36, isAlnum),
		t("pypi-token", "pypi-AgE", 40, dashChar),
		t("rubygems-token", "rubygems_", 40, isAlnum),
		t("docker-token", "dckr_pat_ dckr_oat_", 20, dashChar),
		t("huggingface-token", "hf_", 30, isAlnum, wordStart),
		t("groq-key", "gsk_", 40, isAlnum, wordStart),
		t("xai-key", "xai-", 60, isAlnum, dashStart),
		t("perplexity-key", "pplx-", 40, isAlnum, dashStart),
		t("replicate-token", "r8_", 35, isAlnum, wordStart, digits),
		t("sendgrid-key", "SG.", 60, dotChar, wordStart),
		t("digitalocean-token", "dop_v1_ doo_v1_ dor_v1_", 60, isAlnum),
		t("shopify-token", "shpat_ shpca_ shppa_ shpss_", 32, isAlnum),
		t("vault-token", "hvs. hvb. hvr.", 24, dashChar, wordStart, digits),
		t("linear-key", "lin_api_", 32, isAlnum),
		t("notion-token", "ntn_", 40, isAlnum, wordStart),
		t("supabase-token", "sbp_", 40, isAlnum, wordStart),
		t("atlassian-token", "ATATT3 ATCTT3", 40, tokenChar),
		t("databricks-token", "dapi", 32, hexChar, wordStart),
		t("age-key", "AGE-SECRET-KEY-1", 40, upperDigit),
		t("azure-storage-key", "AccountKey=", 80, base64Std),
		{name: "private-key", kind: token, prefixes: []string{"-----BEGIN "}, match: pemMatch},
		{name: "jwt", kind: token, prefixes: []string{"eyJ"}, match: jwtMatch},
		{name: "url-password", prefixes: []string{"://"}, match: urlPassword},
		{name: "authorization", match: checkBearer, prefixes: []string{"Bearer ", "bearer ", "BEARER "}},
		{name: "authorization", match: matchBasicAuth, prefixes: []string{"Basic ", "basic ", "BASIC "}},
		{name: "authorization", match: authHeader, prefixes: []string{
			"uthorization", "UTHORIZATION", "-api-key", "-Api-Key", "-API-KEY"}},
	}
}
