//! What a method's signature says: what is sent to it, and how it is called with that.

use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Error, FnArg, Pat, Result, ReturnType, Signature, Type};

/// As many values as serde knows tuples of.
const PARAMETERS_MAX: usize = 16;

/// The parameters of a method besides itself and its context.
#[derive(Clone)]
pub(crate) struct Parameters {
    pub(crate) names: Vec<Ident>,
    pub(crate) types: Vec<Type>,
    /// Before which of them the context stands.
    context: Option<usize>,
}

impl Parameters {
    /// Of a constructor, task or entry method, in which `Self` is `chare`.
    pub(crate) fn of(signature: &Signature, chare: &TokenStream) -> Result<Self> {
        refuse_what_is_not_plain(signature)?;
        let mut parameters = Self { names: Vec::new(), types: Vec::new(), context: None };
        for input in &signature.inputs {
            let FnArg::Typed(input) = input else { continue };
            if is_context(&input.ty) {
                parameters.context = Some(parameters.types.len());
                continue;
            }
            let ty = replace_self(input.ty.to_token_stream(), chare);
            refuse_borrowed(&input.ty)?;
            let name = match &*input.pat {
                Pat::Ident(pat) => pat.ident.clone(),
                _ => format_ident!("value{}", parameters.types.len()),
            };
            parameters.names.push(name);
            parameters.types.push(syn::parse2(ty)?);
        }
        if parameters.types.len() > PARAMETERS_MAX {
            let all = signature.inputs.to_token_stream();
            let why = format!("more than {PARAMETERS_MAX} values: make a type of them, with `#[message]`");
            return Err(Error::new_spanned(all, why));
        }
        Ok(parameters)
    }

    /// The type of a message with a value for each.
    pub(crate) fn message(&self) -> TokenStream {
        let types = &self.types;
        match &types[..] {
            [one] => quote!(#one),
            _ => quote!((#(#types,)*)),
        }
    }

    /// A message, or the pattern that takes it apart.
    pub(crate) fn values(&self) -> TokenStream {
        let names = self.local_names();
        match &names[..] {
            [one] => quote!(#one),
            _ => quote!((#(#names,)*)),
        }
    }

    /// What the function is called with, behind itself.
    pub(crate) fn arguments(&self, context: &TokenStream) -> TokenStream {
        let mut arguments: Vec<TokenStream> = self.local_names().iter().map(Ident::to_token_stream).collect();
        if let Some(at) = self.context {
            arguments.insert(at, context.clone());
        }
        quote!(#(#arguments),*)
    }

    /// The same without a context.
    pub(crate) fn arguments_alone(&self) -> TokenStream {
        let names = self.local_names();
        quote!(#(#names),*)
    }

    /// Names that nothing in the program has.
    pub(crate) fn local_names(&self) -> Vec<Ident> {
        (0..self.types.len()).map(|n| Ident::new(&format!("value{n}"), Span::mixed_site())).collect()
    }

    pub(crate) fn has_context(&self) -> bool {
        self.context.is_some()
    }
}

fn refuse_what_is_not_plain(signature: &Signature) -> Result<()> {
    let name = &signature.ident;
    if let Some(token) = &signature.asyncness {
        let why = "entry methods run to their end: what is waited for comes as a message, to another one";
        return Err(Error::new(token.span(), format!("`{name}` cannot be async: {why}")));
    }
    if !signature.generics.params.is_empty() {
        let why = "whoever sends has to know what is sent";
        return Err(Error::new_spanned(
            &signature.generics,
            format!("`{name}` cannot have parameters of its own: {why}"),
        ));
    }
    if let Some(impl_type) = signature.inputs.iter().find_map(|input| match input {
        FnArg::Typed(input) if matches!(*input.ty, Type::ImplTrait(_)) => Some(&input.ty),
        _ => None,
    }) {
        return Err(Error::new_spanned(impl_type, "what is sent has one type: name it"));
    }
    Ok(())
}

fn refuse_borrowed(ty: &Type) -> Result<()> {
    let Type::Reference(reference) = ty else { return Ok(()) };
    let mend = match &*reference.elem {
        Type::Slice(slice) => {
            let of = slice.elem.to_token_stream();
            format!("`Vec<{of}>` or `Bulk<{of}>`")
        }
        Type::Path(path) if path.path.is_ident("str") => "`String`".into(),
        Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "Ctx") => {
            "`&mut Ctx<Self>`".into()
        }
        owned => format!("`{}`", tight(&owned.to_token_stream())),
    };
    Err(Error::new_spanned(ty, format!("what is sent cannot be borrowed: take {mend}")))
}

fn is_context(ty: &Type) -> bool {
    let Type::Reference(reference) = ty else { return false };
    let Type::Path(path) = &*reference.elem else { return false };
    reference.mutability.is_some() && path.path.segments.last().is_some_and(|last| last.ident == "Ctx")
}

/// `Self` means another type where the parameters of a method stand by themselves.
pub(crate) fn replace_self(tokens: TokenStream, chare: &TokenStream) -> TokenStream {
    let replace = |token: TokenTree| match token {
        TokenTree::Ident(ident) if ident == "Self" => chare.clone(),
        TokenTree::Group(group) => {
            let mut inner = Group::new(group.delimiter(), replace_self(group.stream(), chare));
            inner.set_span(group.span());
            TokenTree::Group(inner).into()
        }
        other => other.into(),
    };
    tokens.into_iter().flat_map(replace).collect()
}

/// Tokens as one would write them, for sentences.
pub(crate) fn tight(tokens: &TokenStream) -> String {
    tokens
        .to_string()
        .replace(" <", "<")
        .replace("< ", "<")
        .replace(" >", ">")
        .replace(" ::", "::")
        .replace(":: ", "::")
}

/// The answer of a method, if it gives one.
pub(crate) fn answer(signature: &Signature, chare: &TokenStream) -> Result<Option<Type>> {
    match &signature.output {
        ReturnType::Type(_, ty) if !matches!(&**ty, Type::Tuple(unit) if unit.elems.is_empty()) => {
            refuse_borrowed(ty)?;
            syn::parse2(replace_self(ty.to_token_stream(), chare)).map(Some)
        }
        _ => Ok(None),
    }
}

/// A method that is called on a chare has `&mut self` or `&self`.
pub(crate) fn demand_receiver(signature: &Signature) -> Result<()> {
    let is_borrowed =
        signature.receiver().is_some_and(|receiver| receiver.to_token_stream().to_string().starts_with('&'));
    if is_borrowed {
        return Ok(());
    }
    let at = signature.inputs.first().map_or_else(|| signature.ident.span(), Spanned::span);
    Err(Error::new(
        at,
        format!("`{}` is called on a chare: its first parameter is `&mut self` or `&self`", signature.ident),
    ))
}

/// That a type has a trait of the crate, as an item: these are looked at before all that would fail for the same reason.
pub(crate) fn demand(ty: &Type, has: &str) -> TokenStream {
    let at = ty.span();
    let has = Ident::new(has, at);
    quote_spanned! {at=>
        const _: () = {
            #[allow(trivial_bounds, dead_code)]
            struct Demand
            where
                #ty: ::chares::#has;
        };
    }
}

/// That values of a type can be sent.
pub(crate) fn is_message(ty: &Type) -> TokenStream {
    demand(ty, "Sent")
}
