//! Programs on chares.

pub mod apsp;
pub mod bench;
mod caches;
mod division;
pub mod fem;
pub mod gauss;
pub mod imbalance;
pub mod jacobi;
pub mod kernels;
pub mod manual;
pub mod matmul;
pub mod matrix;
pub mod mis;
pub mod netbench;
pub mod output;
pub mod pic;
mod remembered;
pub mod statics;
pub mod statistics;
pub mod system;
pub mod text_file;
mod trial;
pub mod verify;

#[cfg(test)]
mod tests {
    use chares::Program;
    use command::CommandLine;

    /// A chare type whose shape is opaque could be saved, but neither shown, changed nor compared with later ones.
    #[test]
    fn all_chares_are_of_types_that_can_be_read_by_name() {
        let program = CommandLine::new(Program::new("all", "1"));
        let program = [
            crate::matmul::add_to,
            crate::gauss::add_to,
            crate::jacobi::add_to,
            crate::apsp::add_to,
            crate::statics::add_to,
            crate::mis::add_to,
            crate::fem::add_to,
            crate::pic::add_to,
            crate::imbalance::add_to,
            crate::netbench::add_to,
        ]
        .into_iter()
        .fold(program, |program, add_to| add_to(program))
        .into_program();
        let types = &program.table().chare_types;
        let opaque: Vec<_> = types.iter().filter(|of| (of.schema.shape)() == Default::default()).collect();
        let names: Vec<_> = opaque.iter().map(|of| &of.name).collect();
        assert!(names.is_empty() && types.len() > 20, "{names:?} of {}", types.len());
    }
}
