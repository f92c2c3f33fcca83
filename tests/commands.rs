//! The command line as people use it: every example of the README and the guides, and every refusal, run as a test.

/// Runs the examples with a fixed day and without the user's own files.
fn cases() -> trycmd::TestCases {
    let cases = trycmd::TestCases::new();
    cases.env("NODEWISE_TODAY", "2026-11-30").env("NODEWISE_CONFIG_DIR", "no-such-folder");
    cases
}

#[test]
fn documented_examples() {
    cases().case("README.md").case("docs/*.md");
}

#[test]
fn commands() {
    cases().case("tests/cmd/*.md");
}
