module github.com/united-workforce/uwf/ci/tools/agents

go 1.26.0

replace github.com/united-workforce/uwf => ../../..

require github.com/united-workforce/uwf v0.0.0-00010101000000-000000000000
