module github.com/united-workforce/uwf/ci/testsum

go 1.26.0
