//! The attributes of the crate `chares`, whose documentation says what they do for a program.
//!
//! What they write is what a program could have written itself: `Chare`, a table of entry methods, and a trait with a method
//! for each of them, which proxies get. Names are looked up from the root, so nothing has to be imported for them; mistakes
//! are told where they are, in the program's own lines.

mod chare;
mod data;
mod entry;
mod signature;
mod task;

use proc_macro::TokenStream;
use syn::Item;

/// Makes a chare of a type: said of its `struct` and of an `impl` with its constructor and entry methods. See the
/// documentation of the crate `chares`.
#[proc_macro_attribute]
pub fn chare(options: TokenStream, item: TokenStream) -> TokenStream {
    let written = match syn::parse::<Item>(item) {
        Ok(Item::Impl(block)) => syn::parse(options).and_then(|options| chare::expand(options, block)),
        Ok(Item::Struct(item)) => data::none(options.into()).and_then(|()| data::state(Item::Struct(item))),
        Ok(Item::Enum(item)) => data::none(options.into()).and_then(|()| data::state(Item::Enum(item))),
        Ok(other) => Err(syn::Error::new_spanned(
            other,
            "`#[chare]` stands before the `struct` with a chare's state, and before the `impl` with its entry methods",
        )),
        Err(error) => Err(error),
    };
    written.unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Makes a type that can be a part of messages. See the documentation of the crate `chares`.
#[proc_macro_attribute]
pub fn message(options: TokenStream, item: TokenStream) -> TokenStream {
    let written = data::none(options.into()).and_then(|()| data::message(syn::parse(item)?));
    written.unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Makes a task of a function, for `Driver::tasks`. See the documentation of the crate `chares`.
#[proc_macro_attribute]
pub fn task(options: TokenStream, item: TokenStream) -> TokenStream {
    let written = data::none(options.into()).and_then(|()| task::expand(syn::parse(item)?));
    written.unwrap_or_else(syn::Error::into_compile_error).into()
}
