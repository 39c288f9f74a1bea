package thread_test

// dialectStories are threads of the other generations of definitions.
func dialectStories() []goldenStory {
	return []goldenStory{
		{
			name: "2026-05-18-conditions",
			about: `Threads of the 2026-05-18 dialect: lists of edges with JSONata conditions on the
thread's steps, roles with system prompts, statuses that nobody says. One thread is at
work after it was sent back, one asks a person, one has ended.
Written by uwf before 0.2.`,
			answers: answers{
				"planner": {
					{Output: map[string]any{"plan": "lib"}, Body: "# Plan\n"},
					{Output: map[string]any{"plan": "what?", "needsClarification": true}},
					{Output: map[string]any{"plan": "src", "needsClarification": false}},
				},
				"developer": {{Output: map[string]any{"summary": "done"}}},
				"reviewer": {
					{Output: map[string]any{"approved": false, "comments": "no test"}, Body: "None."},
					{Output: map[string]any{"approved": true, "comments": ""}},
				},
			},
			tell: func(_ *golden, w *goldenWriter) {
				w.start("active", "Mend the parser.", conditionsFlow)
				w.steps("active", 3)
				w.start("asks", "Mend something.", conditionsFlow)
				w.says("planner", 1)
				w.steps("asks", 1)
				w.start("answered", "Mend anything.", conditionsFlow)
				w.says("planner", 1)
				w.steps("answered", 1)
				w.resume("answered", "The lexer.")
				w.steps("answered", 1)
				w.start("ended", "Mend the printer.", conditionsFlow)
				w.says("planner", 0)
				w.says("reviewer", 1)
				w.steps("ended", 3)
			},
		},
		{
			name: "architecture",
			about: `Threads of the dialect of the architecture page: meta and status, $START as a list,
one work folder for each text. One thread is at work, one has ended.
Written by uwf before 0.2.`,
			answers: answers{
				"writer": {{Output: map[string]any{"status": "written", "text": "ode"}, Body: "O ode!"}},
				"critic": {{Output: map[string]any{"status": "poor"}}, {Output: map[string]any{"status": "fine"}, Body: "Yes."}},
			},
			tell: func(_ *golden, w *goldenWriter) {
				w.start("active", "Write an ode.", architectureFlow)
				w.steps("active", 3)
				w.start("ended", "Write a line.", architectureFlow)
				w.says("critic", 1)
				w.steps("ended", 2)
			},
		},
		{
			name: "version-1-liquid",
			about: `Threads of version 1 (0.2 to 0.8): Liquid in the edges, new and resume, a role that
suspends its thread by $status: $SUSPEND. One thread is at work, one asks a person,
one was answered, one has ended and was resumed by its edge, one has ended.
Written by uwf before 0.2.`,
			answers: answers{
				"ideator": {
					{Output: map[string]any{"$status": "ideate", "ideas": []any{map[string]any{"title": "boat", "wild": true}, map[string]any{"wild": false}}}, Body: "Two."},
					{Output: map[string]any{"$status": "$SUSPEND", "reason": "Which sea?"}},
					{Output: map[string]any{"$status": "done", "best": "boat"}, Body: "That one."},
				},
				"critic": {{Output: map[string]any{"$status": "feedback", "themes": "water", "challenge": "make it float"}}},
			},
			tell: func(_ *golden, w *goldenWriter) {
				w.start("active", "Think.", liquidFlow)
				w.steps("active", 2)
				w.start("asks", "Think harder.", liquidFlow)
				w.says("ideator", 1)
				w.steps("asks", 1)
				w.start("answered", "Think again.", liquidFlow)
				w.says("ideator", 1)
				w.steps("answered", 1)
				w.resume("answered", "The North Sea.")
				w.steps("answered", 1)
				w.start("ended", "Think once.", liquidFlow)
				w.says("ideator", 2)
				w.steps("ended", 1)
				w.start("resumed", "Think twice.", liquidFlow)
				w.steps("resumed", 1)
				w.resume("resumed", "And once more.")
				w.says("ideator", 0)
				w.steps("resumed", 1)
			},
		},
	}
}

const conditionsFlow = `name: fix-issue
description: The oldest dialect
roles:
  planner:
    description: Plans
    systemPrompt: |
      You are a planning agent.
      Write the steps.
    outputSchema:
      type: object
      properties:
        plan: {type: string}
        needsClarification: {type: boolean}
      required: [plan]
  developer:
    description: Implements
    systemPrompt: You are a developer agent.
    outputSchema: {type: object, properties: {summary: {type: string}}, required: [summary]}
  reviewer:
    description: Reviews
    systemPrompt: You are a reviewer.
    outputSchema: {type: object, properties: {approved: {type: boolean}, comments: {type: string}}, required: [approved, comments]}
conditions:
  needsClarification:
    description: The planner asks
    expression: $exists(steps[-1].output.needsClarification) and steps[-1].output.needsClarification
  notApproved: steps[-1].output.approved = false
  tooOften:
    expression: $count(steps[role = 'developer']) >= 3 and $last('reviewer').approved = false
graph:
  $START:
    - role: planner
      condition: null
  planner:
    - {role: $SUSPEND, condition: needsClarification, prompt: "Please explain: {{plan}}"}
    - {role: developer, condition: null}
  developer:
    - role: reviewer
  reviewer:
    - {role: $END, condition: tooOften, prompt: null}
    - {role: developer, condition: notApproved}
    - {role: $END, condition: null}
`

const architectureFlow = `name: page
description: The architecture page's dialect
roles:
  writer:
    description: writes
    goal: write
    capabilities: []
    procedure: p
    output: o
    meta:
      type: object
      properties:
        status: {type: string, enum: [written]}
        text: {type: string}
      required: [status, text]
  critic:
    description: criticises
    goal: judge
    capabilities: []
    procedure: p
    output: o
    meta:
      type: object
      properties:
        status: {type: string, enum: [fine, poor]}
      required: [status]
conditions: {}
graph:
  $START:
    - role: writer
      condition: null
  writer:
    written: {role: critic, prompt: "Judge: {{text}} {{_body}}", location: "work/{{text}}"}
  critic:
    fine: {role: $END}
    poor: {role: writer, prompt: Better., location: null}
`

const liquidFlow = `version: 1
name: brainstorm
description: d
roles:
  ideator:
    description: d
    goal: g
    capabilities: []
    procedure: p
    output: o
    frontmatter:
      oneOf:
        - properties:
            $status: {const: ideate}
            ideas: {type: array, items: {type: object, properties: {title: {type: string}, wild: {type: boolean}}}}
          required: [$status, ideas]
        - properties:
            $status: {const: done}
            best: {type: string}
          required: [$status, best]
  critic:
    description: d
    goal: g
    capabilities: []
    procedure: p
    output: o
    frontmatter: {type: object, properties: {$status: {const: feedback}, themes: {type: string}, challenge: {type: string}}, required: [$status, themes]}
graph:
  $START:
    new: {role: ideator, prompt: Generate ideas.}
    resume: {role: ideator, prompt: Continue where you left off.}
  ideator:
    ideate:
      role: critic
      prompt: |
        {% assign many = ideas.size -%}
        {{ many }} ideas:
        {% for idea in ideas -%}
        {{ forloop.index }}. {{ idea.title | default: "untitled" }}{% if idea.wild %} (wild){% endif %}
        {% endfor %}
    done: {role: $END, prompt: "{{ best | upcase }}"}
  critic:
    feedback: {role: ideator, prompt: "{{ themes }}{% if challenge %} {{ challenge }}{% endif %}"}
`
