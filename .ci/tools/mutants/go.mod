module github.com/united-workforce/uwf/ci/mutants

go 1.26.0
