//! Names of types as they are told to people and stand in checkpoints.

/// The name of a type without the modules that it and its arguments are in; for [`entries!`](crate::entries!).
#[doc(hidden)]
#[must_use]
pub fn type_name<T>() -> String {
    without_modules(std::any::type_name::<T>())
}

fn without_modules(name: &str) -> String {
    let is_of_path = |c: char| c.is_alphanumeric() || "_:{}#".contains(c);
    let paths = name.split_inclusive(|c| !is_of_path(c));
    paths.map(|path| path.rfind("::").map_or(path, |at| &path[at + 2..])).collect()
}
