//! The pages of the manual about the applications: `metachare help NAME` prints them as they stand in their folders.

use command::CommandLine;

/// Adds the pages to a program.
#[must_use]
pub fn add_to(program: CommandLine) -> CommandLine {
    program
        .page("matmul", include_str!("matmul/README.md"))
        .page("gauss", include_str!("gauss/README.md"))
        .page("jacobi", include_str!("jacobi/README.md"))
        .page("apsp", include_str!("apsp/README.md"))
        .page("statics", include_str!("statics/README.md"))
        .page("mis", include_str!("mis/README.md"))
        .page("fem", include_str!("fem/README.md"))
        .page("pic", include_str!("pic/README.md"))
        .page("imbalance", include_str!("imbalance/README.md"))
        .page("netbench", include_str!("netbench/README.md"))
        .page("bench", include_str!("bench/README.md"))
        .page("measured", include_str!("bench/MEASURED.md"))
}
