package statefile

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/gitcas/layout"
	"gopkg.in/yaml.v3"
)

const (
	idA = "01KN0000000000000000000001"
	idB = "01KN0000000000000000000002"
	h1  = "0123456789ABC"
	h2  = "1234567890123" // a number to a YAML reader
)

var fullEntry = Entry{
	Head: h1, Status: StatusSuspended, Workflow: h2, Key: "solve: issue #1 \"quoted\"\n",
	Work: Work{Branch: "uwf/" + idA, Commit: strings.Repeat("0", 39) + "1"}, Comment: 12, PR: 3,
	Next:      &Next{Role: "no", Since: 1_700_000_000_000, Answer: h1, Poked: h2, Forgiven: 2},
	Suspended: &Suspended{Role: "developer", Reason: "which one?\n\u202e\u2028\x00é😀"},
	Pause:     &Pause{Reason: "until\nmonday: no"},
	Released:  1_700_000_000_001,
	Attempts:  []string{"refs/uwf/attempts/" + idA + "/run.1"},
	Limits:    map[string]float64{"steps": 20, "cost": 0.5, "true": 1},
	Used:      Used{Head: h1, Steps: 3, Tokens: 1 << 60, DurationMs: 5, CostUSD: 0.30000000000000004, Unpriced: true},
	Spent:     Spent{Month: "2026-11", Tokens: 1 << 60, CostUSD: 0.7, TokensBefore: 3, CostBefore: 0.1},
}

func TestThreadsRoundTrip(t *testing.T) {
	deliver := Entry{Head: h2, Status: StatusEnded, Deliver: true, Since: 1790000000123}
	file, err := NewThreads().With(map[ThreadID]*Entry{idA: &fullEntry, idB: {Head: h1}, "01KN0000000000000000000003": &deliver})
	if err != nil {
		t.Fatal(err)
	}
	text := file.Encode()
	back, err := ParseThreads(text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for id, want := range map[ThreadID]Entry{idA: fullEntry, idB: {Head: h1, Status: StatusActive}, "01KN0000000000000000000003": deliver} {
		got, ok := back.Get(id)
		if !ok || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", id, got, want)
		}
		if now, _ := file.Get(id); !reflect.DeepEqual(got, now) {
			t.Errorf("%s: With returned %+v, the next reader sees %+v", id, now, got)
		}
	}
	if string(back.Encode()) != string(text) {
		t.Error("reading and writing changes the file")
	}
	if !strings.Contains(string(text), idB+": "+h1+"\n") {
		t.Errorf("the short form is not used:\n%s", text)
	}
	var seen map[string]any
	if err := yaml.Unmarshal(text, &seen); err != nil {
		t.Fatalf("not YAML: %v\n%s", err, text)
	}
	next, _ := seen[idA].(map[string]any)["next"].(map[string]any)
	if next["role"] != "no" || seen[idA].(map[string]any)["workflow"] != h2 {
		t.Errorf("another YAML reader sees %v", seen[idA])
	}
	for _, e := range back.lines {
		if v, ok := parsePlain(e.text, 1); !ok || len(v.pairs) != 1 {
			t.Errorf("our own reader does not take what we write:\n%s", e.text)
		}
	}
}

// TestThreadsForms: what people and other versions write.
func TestThreadsForms(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want Entry
	}{
		"bare":       {idA + ": " + h1, Entry{Head: h1, Status: StatusActive}},
		"quoted":     {`"` + idA + `": '` + h2 + "'\n", Entry{Head: h2, Status: StatusActive}},
		"number":     {idA + ": " + h2 + "\n", Entry{Head: h2, Status: StatusActive}},
		"flow":       {idA + ": {head: " + h1 + ", status: ended, next: deliver, pr: 4}\n", Entry{Head: h1, Status: StatusEnded, Deliver: true, PR: 4}},
		"comments":   {"# mine\n---\n" + idA + ": # this one\n  head: " + h1 + " # at\n\n  # more\n  comment: 5\n", Entry{Head: h1, Status: StatusActive, Comment: 5}},
		"deeper":     {idA + ":\n     head: " + h1 + "\n     work:\n           branch: a/b\n", Entry{Head: h1, Status: StatusActive, Work: Work{Branch: "a/b"}}},
		"nulls":      {idA + ":\n  head: " + h1 + "\n  key:\n  next: ~\n  attempts: null\n", Entry{Head: h1, Status: StatusActive}},
		"block text": {idA + ":\n  head: " + h1 + "\n  suspended:\n    role: a\n    reason: |\n      one\n      two\n", Entry{Head: h1, Status: StatusActive, Suspended: &Suspended{"a", "one\ntwo\n", nil}}},
		"same level": {idA + ":\n  head: " + h1 + "\n  attempts:\n  - refs/uwf/attempts/x/1.1\n", Entry{Head: h1, Status: StatusActive, Attempts: []string{"refs/uwf/attempts/x/1.1"}}},
		"crlf":       {idA + ":\r\n  head: " + h1 + "\r\n  pr: 1\r\n", Entry{Head: h1, Status: StatusActive, PR: 1}},
	} {
		file, err := ParseThreads([]byte(strings.ReplaceAll(tc.text, "# mine\n---\n", "---\n# mine\n")))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got, _ := file.Get(idA); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}

func TestThreadsRefused(t *testing.T) {
	entry := idA + ":\n  head: " + h1 + "\n"
	long := func(n int) string { return strings.Repeat("x", n) }
	many := func(n int, item string) string { return strings.Repeat(item+", ", n) }
	for name, tc := range map[string]struct{ text, want string }{
		"empty":              {"", "the file is empty"},
		"blank":              {"\n\n", "the file is empty"},
		"comment only":       {"# x\n", "the file is empty"},
		"indented":           {" " + idA + ": " + h1 + "\n", "line 1: no entry"},
		"list":               {"- a\n", "line 1: not one key with its value"},
		"scalar":             {"x\n", "line 1: not one key with its value"},
		"two keys":           {"{" + idA + ": " + h1 + ", " + idB + ": " + h1 + "}\n", "line 1: not one key with its value"},
		"not UTF-8":          {idA + ": \xff\n", "not UTF-8"},
		"no id":              {"abc: " + h1 + "\n", `line 1: not a thread id: "abc"`},
		"lower case id":      {strings.ToLower(idA) + ": " + h1 + "\n", "line 1: not a thread id"},
		"twice":              {entry + entry, `line 3: "` + idA + `" is there twice`},
		"merge conflict":     {"<<<<<<< ours\n" + entry + "=======\n", "line 1: "},
		"tab":                {idA + ":\n\thead: " + h1 + "\n", "line 2: not valid YAML: "},
		"broken":             {entry + "  key: \"x\n", "line 3: not valid YAML: found unexpected end of stream"},
		"second document":    {entry + "---\n", "line 3: "},
		"twice in the entry": {entry + "  head: " + h1 + "\n", `line 3: duplicate key "head": it stands on line 2 already`},
		"deep":               {entry + "  x: " + strings.Repeat("[", 100) + strings.Repeat("]", 100) + "\n", "line 3: values nest deeper than 64 levels"},
		"anchor":             {entry + "  key: &a x\n", "line 3: the anchor &a is not read here"},
		"alias":              {idA + ": *a\n", "line 1: the alias *a has no anchor"},
		"tag":                {entry + "  key: !!int x\n", "line 3: the tag !!int is not allowed"},
		"tag in a list":      {entry + "  x: [!!int x]\n", "line 3: the tag !!int is not allowed"},
		"merge":              {entry + "  <<: {pr: 1}\n", "line 3: anchors and merge keys are not read here"},
		"list as key":        {entry + "  [a]: b\n", "line 3: a key must be text"},
		"anchor at a key":    {entry + "  &a b: c\n", "line 3: anchors and merge keys are not read here"},
		"tag at a key":       {entry + "  !!str b: c\n", "line 3: tags (!!str) are not allowed on keys"},

		"entry is a list":  {idA + ": [" + h1 + "]\n", "line 1: an entry is a hash or a mapping"},
		"no head":          {idA + ":\n  status: active\n", "line 2: no head"},
		"no hash":          {idA + ": xyz\n", `line 1: head: "xyz" is no hash`},
		"head is a list":   {idA + ":\n  head: [" + h1 + "]\n", `line 2: head: "" is no hash`},
		"workflow no hash": {entry + "  workflow: x\n", `line 3: workflow: "x" is no hash`},
		"status":           {entry + "  status: paused\n", `line 3: status: "paused" is none of`},
		"status is a list": {entry + "  status: [active]\n", `line 3: status: "" is none of`},
		"key is a list":    {entry + "  key: [a]\n", "line 3: key is no text"},
		"long key":         {entry + "  key: " + long(1001) + "\n", "line 3: key: 1001 bytes, more than 1000"},

		"negative":         {entry + "  pr: -1\n", `line 3: pr: "-1" is no whole number`},
		"octal":            {entry + "  pr: 010\n", `line 3: pr: "010" is no whole number`},
		"text number":      {entry + "  pr: \"1\"\n", `line 3: pr: "1" is no whole number`},
		"number in a list": {entry + "  pr: [1]\n", `line 3: pr: "" is no whole number`},
		"no number":        {entry + "  pr: one\n", `line 3: pr: "one" is no whole number`},
		"large number":     {entry + "  pr: 2147483648\n", `line 3: pr: "2147483648" is no whole number`},
		"larger number":    {entry + "  comment: 9223372036854775808\n", `line 3: comment: "9223372036854775808" is no whole number`},

		"work is text":    {entry + "  work: x\n", "line 3: work is no mapping"},
		"unknown in work": {entry + "  work: {branch: a, remote: b}\n", `line 3: work: unknown key "remote"`},
		"branch is empty": {entry + "  work: {branch: \"\"}\n", `line 3: work.branch: "" is no branch name`},
		"branch":          {entry + "  work: {branch: ../../x}\n", `line 3: work.branch: "../../x" is no branch name`},
		"commit":          {entry + "  work: {commit: HEAD}\n", `line 3: work.commit: "HEAD" is no commit id`},
		"commit in capitals": {entry + "  work: {commit: " + strings.Repeat("A", 40) + "}\n",
			`line 3: work.commit: "` + strings.Repeat("A", 40) + `" is no commit id`},
		"long commit": {entry + "  work: {commit: " + strings.Repeat("a", 41) + "}\n", "line 3: work.commit: 41 bytes, more than 40"},

		"attempts is text":      {entry + "  attempts: x\n", "line 3: attempts is no list of at most 1000 refs"},
		"many attempts":         {entry + "  attempts: [" + many(1001, "refs/uwf/attempts/x") + "]\n", "line 3: attempts is no list of at most 1000 refs"},
		"attempt":               {entry + "  attempts: [refs/heads/main]\n", `line 3: attempts: "refs/heads/main" is no ref below`},
		"attempt up":            {entry + "  attempts: [refs/uwf/attempts/../x]\n", `line 3: attempts: "refs/uwf/attempts/../x" is no ref below`},
		"attempt is a list":     {entry + "  attempts: [[refs/uwf/attempts/x]]\n", "line 3: attempts is no text"},
		"next word":             {entry + "  next: tomorrow\n", `line 3: next: "tomorrow" is neither deliver nor a mapping`},
		"next is a list":        {entry + "  next: [a]\n", "line 3: next is no mapping"},
		"poked":                 {entry + "  next: {role: a, poked: x}\n", `line 3: next.poked: "x" is no hash`},
		"unknown in next":       {entry + "  next: {role: a, when: x}\n", `line 3: next: unknown key "when"`},
		"unknown in suspended":  {entry + "  suspended: {role: a, when: x}\n", `line 3: suspended: unknown key "when"`},
		"pause":                 {entry + "  pause: soon\n", "line 3: pause is no mapping"},
		"unknown in pause":      {entry + "  pause: {when: x}\n", `line 3: pause: unknown key "when"`},
		"limits is text":        {entry + "  limits: 3\n", "line 3: limits is no mapping of at most 50 numbers"},
		"many limits":           {entry + "  limits: {" + numbered(51) + "}\n", "line 3: limits is no mapping of at most 50 numbers"},
		"endless limit":         {entry + "  limits: {a: inf}\n", `line 3: limits: "a": "inf" is no number`},
		"endless limit in YAML": {entry + "  limits: {a: .inf}\n", `line 3: limits: "a": ".inf" is no number`},
		"limit is not a number": {entry + "  limits: {a: nan}\n", `line 3: limits: "a": "nan" is no number`},
		"limit is text":         {entry + "  limits: {a: \"1\"}\n", `line 3: limits: "a": "1" is no number`},
		"limit is a list":       {entry + "  limits: {a: [1]}\n", `line 3: limits: "a": "" is no number`},
		"limit in hexadecimal":  {entry + "  limits: {a: 0x1p4}\n", `line 3: limits: "a": "0x1p4" is no number`},
		"long name of a limit":  {entry + "  limits: {" + long(201) + ": 1}\n", "line 3: limits: "},

		"by":                      {entry + "  by: alice\n", "line 3: by is no mapping"},
		"unknown in by":           {entry + "  by: {kind: forge, login: alice, team: x}\n", `line 3: by: unknown key "team"`},
		"by of another kind":      {entry + "  by: {kind: admin, login: alice}\n", `line 3: by: not somebody who can have done it: kind "admin"`},
		"by of no kind":           {entry + "  by: {login: alice}\n", `line 3: by: not somebody who can have done it: kind ""`},
		"by of nobody":            {entry + "  by: {kind: forge, id: 7}\n", "line 3: by: not somebody who can have done it: of kind forge it has a login"},
		"local by with a login":   {entry + "  by: {kind: local, name: Alice, login: alice}\n", "line 3: by: not somebody who can have done it: of kind local it has a name, and nothing else"},
		"local by without a name": {entry + "  by: {kind: local}\n", "of kind local it has a name"},
		"by with a name":          {entry + "  by: {kind: bot, login: x, name: Alice}\n", "of kind bot it has a login, and no name"},
		"by with a negative id":   {entry + "  by: {kind: forge, login: alice, id: -7}\n", `line 3: by.id: "-7" is no whole number`},
		"by with a large id":      {entry + "  by: {kind: forge, login: alice, id: 9007199254740992}\n", "id 9007199254740992 is out of range"},
		"by with a long login":    {entry + "  by: {kind: forge, login: " + long(201) + "}\n", "is no line of at most 200 bytes"},
		"by over two lines":       {entry + "  by: {kind: forge, login: \"a\\nb\"}\n", "is no line of at most 200 bytes"},
		"by from right to left":   {entry + "  by: {kind: local, name: \"a\u202eb\"}\n", "is no line of at most 200 bytes"},
		"by with a long address":  {entry + "  by: {kind: forge, login: a, url: " + long(2001) + "}\n", "is no line of at most 2000 bytes"},
		"by of next":              {entry + "  next: {role: a, by: {kind: x}}\n", "next.by: not somebody"},
		"by of suspended":         {entry + "  suspended: {role: a, by: {kind: x}}\n", "suspended.by: not somebody"},
		"by of pause":             {entry + "  pause: {by: {kind: x}}\n", "pause.by: not somebody"},
		"title":                   {entry + "  title: [a]\n", "line 3: title is no text"},
		"long title":              {entry + "  title: " + long(1001) + "\n", "line 3: title: 1001 bytes, more than 1000"},

		"used":                {entry + "  used: 3\n", "line 3: used is no mapping"},
		"unknown in used":     {entry + "  used: {head: " + h1 + ", time: 3}\n", `line 3: used: unknown key "time"`},
		"negative time":       {entry + "  used: {durationMs: -1}\n", `line 3: used.durationMs: "-1" is no whole number`},
		"negative steps":      {entry + "  used: {steps: -1}\n", `line 3: used.steps: "-1" is no whole number`},
		"many steps":          {entry + "  used: {steps: 99999999999}\n", `line 3: used.steps: "99999999999" is no whole number`},
		"cost is a word":      {entry + "  used: {costUsd: much}\n", `line 3: used.costUsd: "much" is no amount`},
		"cost is text":        {entry + "  used: {costUsd: \"1\"}\n", `line 3: used.costUsd: "1" is no amount`},
		"cost is a list":      {entry + "  used: {costUsd: [1]}\n", `line 3: used.costUsd: "" is no amount`},
		"cost in hexadecimal": {entry + "  used: {costUsd: 0x1p4}\n", `line 3: used.costUsd: "0x1p4" is no amount`},
		"endless cost":        {entry + "  used: {costUsd: inf}\n", `line 3: used.costUsd: "inf" is no amount`},
		"large cost":          {entry + "  used: {costUsd: 1000000000000001}\n", `line 3: used.costUsd: "1000000000000001" is no amount`},
		"no cost":             {entry + "  used: {costUsd: nan}\n", `line 3: used.costUsd: "nan" is no amount`},
		"negative cost":       {entry + "  used: {costUsd: -0.1}\n", `line 3: used.costUsd: "-0.1" is no amount`},
		"unpriced, a number":  {entry + "  used: {unpriced: 1}\n", `line 3: used.unpriced: "1" is not true`},
		"unpriced, false":     {entry + "  used: {unpriced: false}\n", `line 3: used.unpriced: "false" is not true`},
		"spent":               {entry + "  spent: 3\n", "line 3: spent is no mapping"},
		"unknown in spent":    {entry + "  spent: {year: 3}\n", `line 3: spent: unknown key "year"`},
		"spent in no month":   {entry + "  spent: {month: 2026-13}\n", `line 3: spent.month: "2026-13" is no month`},
		"spent on a day":      {entry + "  spent: {month: 2026-11-01}\n", "line 3: spent.month: 10 bytes, more than 7"},
		"negative spending":   {entry + "  spent: {tokens: -1}\n", `line 3: spent.tokens: "-1" is no whole number`},
		"negative before":     {entry + "  spent: {tokensBefore: -1}\n", `line 3: spent.tokensBefore: "-1" is no whole number`},
		"spent cost":          {entry + "  spent: {costUsd: -1}\n", `line 3: spent.costUsd: "-1" is no amount`},
		"cost before":         {entry + "  spent: {costBefore: -1}\n", `line 3: spent.costBefore: "-1" is no amount`},
		"unpriced, text":      {entry + "  used: {unpriced: \"true\"}\n", `line 3: used.unpriced: "true" is not true`},
	} {
		if _, err := ParseThreads([]byte(tc.text)); !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %s", name, err, tc.want)
		}
	}
	if _, err := ParseThreads(make([]byte, MaxThreadsFile+1)); !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), "bytes, more than") {
		t.Errorf("too large: %v", err)
	}
}

// numbered is the inside of a mapping with so many keys.
func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "k%d: 1, ", i)
	}
	return b.String()
}

// TestBranchNames: a branch of a hostile entry is a name that git takes, below
// refs/heads.
func TestBranchNames(t *testing.T) {
	for name, want := range map[string]bool{
		"main": true, "uwf/x": true, "a.b": true, "a@b": true, "x{": true, "café/é": true, "-": false, "-x": false, "x-": true,
		"": false, "@": false, "a.": false, "a..b": false, "a@{b": false, "a b": false, "a~1": false, "a^": false, "a:b": false,
		"a?": false, "a*": false, "a[b": false, `a\b`: false, "a\x7f": false, "a\nb": false, "a\x00": false, "a\xff": false,
		"/a": false, "a/": false, "a//b": false, ".a": false, "a/.b": false, "a.lock": false, "a.lock/b": false,
		strings.Repeat("x", maxBranch): true, strings.Repeat("x", maxBranch+1): false,
	} {
		if branchOK(name) != want {
			t.Errorf("%.40q: %t", name, !want)
		}
	}
}

// TestEntriesUnstorable: what could not be read back as it is, is not written. It is no
// error about the file.
func TestEntriesUnstorable(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	change := func(f func(*Entry)) *Entry {
		e := fullEntry.cloneEntry()
		f(&e)
		return &e
	}
	for name, tc := range map[string]struct {
		entry *Entry
		want  string
	}{
		"head":                {change(func(e *Entry) { e.Head = "x" }), "head: \"x\" is no hash"},
		"status":              {change(func(e *Entry) { e.Status = "paused" }), "status: \"paused\" is none of"},
		"workflow":            {change(func(e *Entry) { e.Workflow = "x" }), "workflow: \"x\""},
		"long key":            {change(func(e *Entry) { e.Key = long(maxKeyText + 1) }), "key: 1001 bytes"},
		"key not UTF-8":       {change(func(e *Entry) { e.Key = "\xff" }), "Key would be read back as something else"},
		"branch":              {change(func(e *Entry) { e.Work.Branch = "../x" }), "work.branch: "},
		"commit":              {change(func(e *Entry) { e.Work.Commit = "HEAD" }), "work.commit: "},
		"steps below 0":       {change(func(e *Entry) { e.Used.Steps = -1 }), "used.steps: "},
		"too many steps":      {change(func(e *Entry) { e.Used.Steps = math.MaxInt32 + 1 }), "used.steps: "},
		"tokens":              {change(func(e *Entry) { e.Used.Tokens = -1 }), "used.tokens: "},
		"time":                {change(func(e *Entry) { e.Used.DurationMs = -1 }), "used.durationMs: "},
		"cost below 0":        {change(func(e *Entry) { e.Used.CostUSD = -1 }), "used.costUsd: "},
		"endless cost":        {change(func(e *Entry) { e.Used.CostUSD = math.Inf(1) }), "used.costUsd: "},
		"comment":             {change(func(e *Entry) { e.Comment = -1 }), "comment: "},
		"pr below 0":          {change(func(e *Entry) { e.PR = -1 }), "pr: "},
		"large pr":            {change(func(e *Entry) { e.PR = math.MaxInt32 + 1 }), "pr: "},
		"a role and deliver":  {change(func(e *Entry) { e.Deliver = true }), "Next would be read back"},
		"since":               {change(func(e *Entry) { e.Next, e.Deliver, e.Since = nil, true, -1 }), "since: "},
		"long role":           {change(func(e *Entry) { e.Next.Role = long(maxRoleText + 1) }), "next.role: 201 bytes"},
		"next since":          {change(func(e *Entry) { e.Next.Since = -1 }), "next.since: "},
		"forgiven below 0":    {change(func(e *Entry) { e.Next.Forgiven = -1 }), "next.forgiven: "},
		"many forgiven":       {change(func(e *Entry) { e.Next.Forgiven = math.MaxInt32 + 1 }), "next.forgiven: "},
		"answer":              {change(func(e *Entry) { e.Next.Answer = "x" }), "next.answer: "},
		"poked":               {change(func(e *Entry) { e.Next.Poked = "x" }), "next.poked: "},
		"role that suspends":  {change(func(e *Entry) { e.Suspended.Role = long(maxRoleText + 1) }), "suspended.role: "},
		"reason to suspend":   {change(func(e *Entry) { e.Suspended.Reason = long(maxReasonText + 1) }), "suspended.reason: "},
		"reason to pause":     {change(func(e *Entry) { e.Pause.Reason = long(maxReasonText + 1) }), "pause.reason: "},
		"many attempts":       {change(func(e *Entry) { e.Attempts = slices.Repeat(e.Attempts, maxAttempts+1) }), "attempts is no list of at most 1000"},
		"attempt elsewhere":   {change(func(e *Entry) { e.Attempts = []string{"refs/heads/main"} }), "attempts: "},
		"attempt up":          {change(func(e *Entry) { e.Attempts = []string{layout.Attempts + "../x"} }), "attempts: "},
		"long title":          {change(func(e *Entry) { e.Title = long(maxTitleText + 1) }), "title: "},
		"title not UTF-8":     {change(func(e *Entry) { e.Title = "\xff" }), "Title would be read back"},
		"by":                  {change(func(e *Entry) { e.By = &By{} }), "By would be read back"},
		"by of next":          {change(func(e *Entry) { e.Next.By = &By{} }), "Next would be read back"},
		"by of suspended":     {change(func(e *Entry) { e.Suspended.By = &By{} }), "Suspended would be read back"},
		"by of pause":         {change(func(e *Entry) { e.Pause.By = &By{} }), "Pause would be read back"},
		"name of a limit":     {change(func(e *Entry) { e.Limits["\xff"] = 1 }), "Limits would be read back"},
		"limit not a number":  {change(func(e *Entry) { e.Limits["steps"] = math.NaN() }), "limits: \"steps\": \"NaN\" is no number"},
		"endless limit":       {change(func(e *Entry) { e.Limits["steps"] = math.Inf(1) }), "limits: \"steps\": \"+Inf\" is no number"},
		"more limits than 50": {change(func(e *Entry) { e.Limits = manyLimits() }), "limits is no mapping of at most 50"},
	} {
		_, err := NewThreads().With(map[ThreadID]*Entry{idA: tc.entry})
		if !errors.Is(err, ErrUnstorable) || errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %s", name, err, tc.want)
		}
	}
	if _, err := NewThreads().With(map[ThreadID]*Entry{"x": {Head: h1}}); !errors.Is(err, ErrUnstorable) || errors.Is(err, ErrMalformed) {
		t.Errorf("no id: %v", err)
	}
}

func manyLimits() map[string]float64 {
	limits := map[string]float64{}
	for i := range maxLimits + 1 {
		limits[fmt.Sprint(i)] = 1
	}
	return limits
}

// TestUsed: what an entry says of another head than its own is not known, and not
// written again.
func TestUsed(t *testing.T) {
	file, err := ParseThreads([]byte(idA + ": {head: " + h1 + ", used: {head: " + h2 + ", steps: 3, tokens: 4}}\n" + idB + ": {head: " + h1 + ", used: {head: " + h1 + ", steps: 3, tokens: 4}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	a, _ := file.Get(idA)
	b, _ := file.Get(idB)
	if u, known := a.Known(); known {
		t.Errorf("%+v is taken for the head %s", u, a.Head)
	}
	if u, known := b.Known(); !known || u.Steps != 3 || u.Tokens != 4 {
		t.Errorf("%+v, %t", u, known)
	}
	b.Head = h2
	if file, err = file.With(map[ThreadID]*Entry{idA: &a, idB: &b}); err != nil {
		t.Fatal(err)
	}
	if text := string(file.Encode()); text != idA+": "+h1+"\n"+idB+": \""+h2+"\"\n" {
		t.Errorf("written as\n%s", text)
	}
	b.Used = Used{Head: h2, Steps: -1}
	if _, err := file.With(map[ThreadID]*Entry{idB: &b}); !errors.Is(err, ErrUnstorable) {
		t.Errorf("a negative number: %v", err)
	}
	if _, known := (Entry{}).Known(); known {
		t.Error("nothing is known of no head")
	}
}

// TestUnknownKeys: an older uwf loses nothing that a newer one wrote.
func TestUnknownKeys(t *testing.T) {
	file, err := ParseThreads([]byte(idA + ":\n  head: " + h1 + "\n  color: 0x1F\n  shape: {sides: [1, two, {a: b}], \"empty\": [], none: }\n  text: |\n    a\n    b\n  nothing: ~\n"))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		// Set from scratch, without the entry that was read.
		if file, err = file.With(map[ThreadID]*Entry{idA: {Head: h2, PR: 7}}); err != nil {
			t.Fatal(err)
		}
	}
	if file, err = ParseThreads(file.Encode()); err != nil {
		t.Fatal(err)
	}
	var got map[string]map[string]any
	if err := yaml.Unmarshal(file.Encode(), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"head": h2, "status": "active", "pr": 7, "color": 31, "text": "a\nb\n", "nothing": nil,
		"shape": map[string]any{"sides": []any{1, "two", map[string]any{"a": "b"}}, "empty": []any{}, "none": nil}}
	if !reflect.DeepEqual(got[idA], want) {
		t.Errorf("got %v, want %v", got[idA], want)
	}
}

// TestUntouchedBytes: an entry that a change doesn't name keeps its bytes.
func TestUntouchedBytes(t *testing.T) {
	mine := idA + ": {head:   " + h1 + "} # by hand\n"
	file, err := ParseThreads([]byte("# top\n" + mine + idB + ": " + h1 + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	if file, err = file.With(map[ThreadID]*Entry{idB: {Head: h2}}); err != nil {
		t.Fatal(err)
	}
	if want := "# top\n" + mine + idB + ": \"" + h2 + "\"\n"; string(file.Encode()) != want {
		t.Errorf("got\n%s\nwant\n%s", file.Encode(), want)
	}
	if file, err = file.With(map[ThreadID]*Entry{idA: nil, idB: nil}); err != nil || string(file.Encode()) != "# top\n{}\n" {
		t.Errorf("without entries: %q, %v", file.Encode(), err)
	}
	if file, err = ParseThreads(file.Encode()); err != nil || len(file.Keys()) != 0 {
		t.Errorf("the empty file: %v", err)
	}
}

func manyThreads(t testing.TB, n int) []byte {
	set := map[ThreadID]*Entry{}
	for i := range n {
		id := ThreadID(fmt.Sprintf("01KN%022d", i))
		set[id] = &Entry{Head: h1, Workflow: h1, Key: "solve-issue/issue/" + fmt.Sprint(i), Work: Work{Branch: "uwf/" + string(id), Commit: strings.Repeat("a", 40)}, Next: &Next{Role: "developer", Since: 1_700_000_000_000}}
	}
	file, err := NewThreads().With(set)
	if err != nil {
		t.Fatal(err)
	}
	return file.Encode()
}

// BenchmarkParseThreads reads 1,000 full entries, and another YAML reader the same.
func BenchmarkParseThreads(b *testing.B) {
	data := manyThreads(b, 1000)
	for name, parse := range map[string]func() error{
		"ours": func() error { _, err := ParseThreads(data); return err },
		"yaml": func() error { var v any; return yaml.Unmarshal(data, &v) },
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if err := parse(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestParseIsCheap: every job reads all entries of a repository. What a reader makes
// is what it costs, and the same on every machine; a YAML reader's is 158 an entry.
func TestParseIsCheap(t *testing.T) {
	data := manyThreads(t, 1000)
	made := testing.AllocsPerRun(1, func() {
		if _, err := ParseThreads(data); err != nil {
			t.Error(err)
		}
	})
	if made > 10_000 {
		t.Errorf("reading 1,000 entries makes %v things", made)
	}
}

// FuzzPlain: what our own reader takes, yaml.v3 reads in the same way.
func FuzzPlain(f *testing.F) {
	for _, s := range []string{idA + ": " + h1, "a:\n  b: \"x\\u00e9\\n\"\n  c:\n    - d\n    - e: f\n      g: h\n", "a: \"\\ud800\"", "a:\nb: c", "a:\n  - - x", "\"a\": b # c", "\"\": b"} {
		f.Add(s)
	}
	f.Add(string(manyThreads(f, 2)))
	f.Fuzz(func(t *testing.T, text string) {
		v, ok := parsePlain(text, 1)
		if !ok || strings.ContainsRune(text, '\uFFFD') || len(text) > 1<<12 {
			return
		}
		want, err := parseYAML(text, 1)
		if err != nil {
			if strings.Contains(err.Error(), "not UTF-8") || strings.Contains(err.Error(), "control characters") || strings.Contains(err.Error(), "invalid") {
				return // parseChunks looks for that first
			}
			t.Fatalf("our reader takes %q, yaml.v3 says %v", text, err)
		}
		if a, b := flat(v), flat(want); a != b {
			t.Fatalf("%q: %s, yaml.v3: %s", text, a, b)
		}
	})
}

func flat(v value) string {
	switch v.kind {
	case mapping:
		s := "{"
		for _, p := range v.pairs {
			s += fmt.Sprintf("%q:%s,", p.key, flat(p.val))
		}
		return s + "}"
	case sequence:
		s := "["
		for _, i := range v.items {
			s += flat(i) + ","
		}
		return s + "]"
	}
	if v.isNull() {
		return "null"
	}
	return fmt.Sprintf("%q/%t", v.text, v.str)
}

// FuzzThreads: any bytes are read or refused, and what was read is written and
// read again as the same.
func FuzzThreads(f *testing.F) {
	f.Add([]byte(idA + ": " + h1 + "\n"))
	f.Add(manyThreads(f, 2))
	f.Add([]byte("{}\n"))
	f.Add([]byte("# c\n" + idA + ": {head: " + h1 + ", x: [1, {y: ~}], limits: {a: 1e3}}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := ParseThreads(data)
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Fatal(err)
			}
			return
		}
		set := map[ThreadID]*Entry{}
		for id, e := range file.All() {
			set[id] = &e
		}
		again, err := file.With(set)
		if errors.Is(err, ErrUnstorable) {
			return // a role and deliver at once, say
		}
		if err != nil {
			t.Fatal(err)
		}
		back, err := ParseThreads(again.Encode())
		if err != nil {
			t.Fatalf("%v\n%s", err, again.Encode())
		}
		for id := range set {
			a, _ := again.Get(id)
			b, _ := back.Get(id)
			if !reflect.DeepEqual(a, b) {
				t.Fatalf("%+v\n%+v", a, b)
			}
		}
	})
}
