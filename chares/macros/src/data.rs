//! `#[chare]` before a type with state, and `#[message]`: packing by serde, without what would be lost on the way.

use crate::signature::demand;
use proc_macro2::TokenStream;
use quote::quote;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{
    Attribute, Error, Field, Generics, Item, LitStr, Meta, Path, Result, Token, TypeParam, parse_quote,
};

/// Refuses options where there are none.
pub(crate) fn none(options: TokenStream) -> Result<()> {
    if options.is_empty() {
        return Ok(());
    }
    Err(Error::new_spanned(options, "there are no options here; those of a chare stand before its `impl`"))
}

/// A chare's state.
pub(crate) fn state(mut item: Item) -> Result<TokenStream> {
    let fields = fields_of(&mut item)?;
    let mut checks = TokenStream::new();
    for field in fields {
        if !rebuild(field)? {
            checks.extend(demand(&field.ty, "Travels"));
        }
    }
    // What has parameters cannot be looked at by itself.
    let checks = generics_of(&item).is_some_and(|generics| generics.params.is_empty()).then_some(checks);
    let packing = packing(&item);
    Ok(quote! {
        #checks
        #packing
        #item
    })
}

/// Something that is sent.
pub(crate) fn message(mut item: Item) -> Result<TokenStream> {
    if !matches!(item, Item::Struct(_) | Item::Enum(_)) {
        return Err(Error::new_spanned(item, "`#[message]` stands before a `struct` or an `enum`"));
    }
    for field in fields_of(&mut item)? {
        if let Some(attribute) = field.attrs.iter().find(|a| a.path().is_ident("rebuild")) {
            return Err(Error::new_spanned(
                attribute,
                "a message arrives as it was sent: only a chare rebuilds parts of its state",
            ));
        }
        refuse_skipped(field)?;
    }
    let packing = packing(&item);
    Ok(quote! {
        #packing
        #item
    })
}

/// What has a type packed. A type with parameters is packed where these are what the type says of them: that is what its chare
/// knows of them too.
fn packing(item: &Item) -> TokenStream {
    let bounds =
        generics_of(item).filter(|generics| generics.type_params().next().is_some()).map(|generics| {
            let own = generics.type_params().filter(|parameter| !parameter.bounds.is_empty());
            let own = own.map(|TypeParam { ident, bounds, .. }| quote!(#ident: #bounds));
            let others =
                generics.where_clause.iter().flat_map(|clause| clause.predicates.iter().map(|p| quote!(#p)));
            let all: Vec<String> = own.chain(others).map(|bound| bound.to_string()).collect();
            let all = all.join(", ");
            quote!(#[serde(bound(serialize = #all, deserialize = #all))])
        });
    quote! {
        #[derive(::chares::serde::Serialize, ::chares::serde::Deserialize)]
        #[serde(crate = "::chares::serde")]
        #bounds
    }
}

fn fields_of(item: &mut Item) -> Result<Vec<&mut Field>> {
    match item {
        Item::Struct(item) => Ok(item.fields.iter_mut().collect()),
        Item::Enum(item) => Ok(item.variants.iter_mut().flat_map(|variant| &mut variant.fields).collect()),
        other => Err(Error::new_spanned(other, "neither a `struct` nor an `enum`")),
    }
}

fn generics_of(item: &Item) -> Option<&Generics> {
    match item {
        Item::Struct(item) => Some(&item.generics),
        Item::Enum(item) => Some(&item.generics),
        _ => None,
    }
}

/// Has a field that says so made anew on arrival by a function of the program; whether it does.
fn rebuild(field: &mut Field) -> Result<bool> {
    let Some(at) = field.attrs.iter().position(|attribute| attribute.path().is_ident("rebuild")) else {
        return refuse_skipped(field).map(|()| false);
    };
    let attribute = field.attrs.remove(at);
    let hook: Path = match &attribute.meta {
        Meta::List(list) => list.parse_args()?,
        _ => {
            let why =
                "say which function makes the field anew where the chare arrives: `#[rebuild(function)]`";
            return Err(Error::new_spanned(attribute, why));
        }
    };
    let hook = LitStr::new(&quote!(#hook).to_string(), attribute.span());
    field.attrs.push(parse_quote!(#[serde(skip, default = #hook)]));
    Ok(true)
}

/// A field that serde skips would be lost without a word.
fn refuse_skipped(field: &Field) -> Result<()> {
    for attribute in field.attrs.iter().filter(|attribute| attribute.path().is_ident("serde")) {
        if skips(attribute) {
            let why = "this field would be lost when the chare moves: make it a `Scratch` or a `Stopwatch`, or say \
                       `#[rebuild(function)]`, which makes it anew where the chare arrives";
            return Err(Error::new_spanned(attribute, why));
        }
    }
    Ok(())
}

fn skips(attribute: &Attribute) -> bool {
    let options = attribute.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated);
    options.is_ok_and(|options| {
        options
            .iter()
            .any(|option| option.path().get_ident().is_some_and(|name| name.to_string().starts_with("skip")))
    })
}
