//! `#[task]`: a function that any PE can be given to do.

use crate::signature::{Parameters, answer, is_message};
use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Attribute, Error, FnArg, ItemFn, Result, Visibility};

/// A type of the function's name, which can be handed to `Driver::tasks` and called as the function; the function itself is
/// behind it.
pub(crate) fn expand(mut function: ItemFn) -> Result<TokenStream> {
    let signature = &function.sig;
    if let Some(FnArg::Receiver(receiver)) = signature.inputs.first() {
        return Err(Error::new_spanned(receiver, "a task is a function of its own: it has no `self`"));
    }
    let name = signature.ident.clone();
    let parameters = Parameters::of(signature, &quote!(Self))?;
    if parameters.has_context() {
        let why = "a task has no `Ctx`: it computes something of what it is given";
        return Err(Error::new_spanned(&signature.inputs, why));
    }
    let answer = answer(signature, &quote!(Self))?;
    let output = answer.as_ref().map_or_else(|| quote!(()), ToTokens::to_token_stream);
    let (input, values, types) = (parameters.message(), parameters.values(), &parameters.types);
    let arguments = parameters.arguments(&TokenStream::new());
    let checks = types.iter().chain(&answer).map(is_message);
    let is_doc = |attribute: &Attribute| attribute.path().is_ident("doc");
    let (docs, others): (Vec<_>, Vec<_>) = std::mem::take(&mut function.attrs).into_iter().partition(is_doc);
    let vis = std::mem::replace(&mut function.vis, Visibility::Inherited);
    function.attrs = others;
    Ok(quote! {
        #(#checks)*
        #(#docs)*
        #[derive(Clone, Copy, Debug)]
        #[allow(non_camel_case_types)]
        #vis struct #name;

        const _: () = {
            #function

            impl ::chares::Task for #name {
                type Input = #input;
                type Output = #output;

                fn run(#values: #input) -> #output {
                    #name(#arguments)
                }
            }

            impl ::core::ops::Deref for #name {
                type Target = fn(#(#types),*) -> #output;

                fn deref(&self) -> &Self::Target {
                    const CALL: fn(#(#types),*) -> #output = #name;
                    &CALL
                }
            }

            ::chares::inventory::submit! { ::chares::Registered::of::<::chares::Doer<#name>>(::core::module_path!()) }
        };
    })
}
