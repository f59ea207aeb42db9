//! `#[chare]` before an `impl`: its constructor and entry methods become a chare type.

use crate::entry::{Answer, Entry, Role, When};
use crate::signature::{Parameters, is_message, tight};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use std::collections::BTreeMap;
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{
    Error, Generics, ImplItem, ImplItemFn, ItemImpl, LitInt, LitStr, Result, ReturnType, Token, Type,
    Visibility, parse_quote,
};

/// What stands in `#[chare(…)]`.
#[derive(Default)]
pub(crate) struct Options {
    index: Option<Type>,
    name: Option<LitStr>,
    version: Option<LitInt>,
    reduces: Vec<Reduced>,
}

/// What elements contribute to a reduction, with its name if it is another than that of the type.
struct Reduced {
    ty: Type,
    name: Option<LitStr>,
}

impl Parse for Reduced {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let ty = input.parse()?;
        let name = input.parse::<Option<Token![as]>>()?.map(|_| input.parse()).transpose()?;
        Ok(Self { ty, name })
    }
}

impl Parse for Options {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut options = Self::default();
        while !input.is_empty() {
            let name: Ident = input.parse()?;
            match name.to_string().as_str() {
                "index" => options.index = Some(after_equals(input)?),
                "name" => options.name = Some(after_equals(input)?),
                "version" => options.version = Some(after_equals(input)?),
                "reduces" => {
                    let listed;
                    syn::parenthesized!(listed in input);
                    options.reduces =
                        listed.parse_terminated(Reduced::parse, Token![,])?.into_iter().collect();
                }
                other => {
                    let why = format!(
                        "a chare has no option `{other}`: there are `index = [u32; 2]`, `reduces(Sum<f64>)`, `name = \"…\"` \
                         and `version = 2`"
                    );
                    return Err(Error::new(name.span(), why));
                }
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(options)
    }
}

fn after_equals<T: Parse>(input: ParseStream<'_>) -> Result<T> {
    input.parse::<Token![=]>()?;
    input.parse()
}

/// All that an `impl` says.
struct Chare {
    ty: TokenStream,
    name: Ident,
    generics: Generics,
    options: Options,
    init: Parameters,
    entries: Vec<Entry>,
    whens: Vec<When>,
    arrived: Option<Arrived>,
    vis: Visibility,
}

/// The method that is called where the chare has arrived.
struct Arrived {
    name: Ident,
    given: Parameters,
}

impl Arrived {
    fn read(method: &ImplItemFn, chare: &TokenStream) -> Result<Self> {
        let given = Parameters::of(&method.sig, chare)?;
        let is_method = method.sig.receiver().is_some();
        if !is_method || !given.types.is_empty() || !matches!(method.sig.output, ReturnType::Default) {
            let why = "nobody sends to it and nobody asks: write `fn arrived(&mut self, ctx: &mut Ctx<Self>)`, or without `ctx`";
            return Err(Error::new_spanned(&method.sig, why));
        }
        Ok(Self { name: method.sig.ident.clone(), given })
    }

    /// The method by which the runtime calls it.
    fn method(&self, ty: &TokenStream) -> TokenStream {
        let (name, ctx) = (&self.name, Ident::new("ctx", Span::mixed_site()));
        let arguments = self.given.arguments(&ctx.to_token_stream());
        quote! {
            #[allow(unused_variables)]
            fn arrived(&mut self, #ctx: &mut ::chares::Ctx<'_, Self>) {
                <#ty>::#name(self, #arguments)
            }
        }
    }
}

pub(crate) fn expand(options: Options, mut block: ItemImpl) -> Result<TokenStream> {
    let chare = Chare::read(options, &mut block)?;
    let (proxies, tables, methods) = (chare.proxies(), chare.tables(), chare.methods());
    // What has parameters cannot be looked at by itself.
    let is_plain = chare.generics.params.is_empty();
    let init_checks = chare.init.types.iter().filter(|_| is_plain).map(is_message);
    let checks = chare.entries.iter().filter(|_| is_plain).map(Entry::checks);
    Ok(quote! {
        #(#init_checks)*
        #(#checks)*
        #block
        #proxies
        const _: () = {
            #methods
            #tables
        };
    })
}

impl Chare {
    fn read(options: Options, block: &mut ItemImpl) -> Result<Self> {
        if let Some((path, _)) = &block.trait_ {
            return Err(Error::new_spanned(
                path,
                "`#[chare]` stands before an `impl` of the type itself, without a trait",
            ));
        }
        let ty = block.self_ty.to_token_stream();
        let generics = block.generics.clone();
        if let Some(lifetime) = generics.lifetimes().next() {
            return Err(Error::new_spanned(
                lifetime,
                "a chare borrows nothing: it has no lifetime among its parameters",
            ));
        }
        let name = match &*block.self_ty {
            Type::Path(path) => path.path.segments.last().map(|last| last.ident.clone()),
            _ => None,
        };
        let name =
            name.ok_or_else(|| Error::new_spanned(&block.self_ty, "a chare is a `struct` or an `enum`"))?;
        let (mut init, mut entries, mut whens, mut vis) =
            (None, Vec::new(), Vec::new(), Visibility::Inherited);
        let mut arrived = None;
        for item in &mut block.items {
            let ImplItem::Fn(method) = item else { continue };
            let role = Role::take(method)?;
            if method.sig.ident == "new" && method.sig.receiver().is_none() {
                init = Some(Parameters::of(&method.sig, &ty)?);
            }
            match role {
                Role::Plain => {}
                Role::Arrived => {
                    let read = Arrived::read(method, &ty)?;
                    if arrived.replace(read).is_some() {
                        let why = "a chare has one `#[arrived]` method: call the other from it";
                        return Err(Error::new_spanned(&method.sig.ident, why));
                    }
                }
                Role::When(ready) => whens.push(When::read(method, *ready)?),
                Role::Collect(collect) => {
                    let (entry, when) = Entry::collecting(method, &ty, *collect)?;
                    entries.push(entry);
                    whens.push(when);
                }
                Role::Entry(given) => entries.push(Entry::read(method, &ty, given, None)?),
                Role::Reduce { is_ordered } => {
                    entries.push(Entry::read(method, &ty, None, Some(is_ordered))?)
                }
            }
            if matches!(vis, Visibility::Inherited)
                && entries.last().is_some_and(|last| last.name == method.sig.ident)
            {
                vis = method.vis.clone();
            }
        }
        let init = init.ok_or_else(|| {
            let why = format!("`{name}` has no constructor: write `fn new(ctx: &mut Ctx<Self>) -> Self`");
            Error::new_spanned(&block.self_ty, why)
        })?;
        Ok(Self { ty, name, generics, options, init, entries, whens, arrived, vis })
    }

    fn trait_name(&self) -> Ident {
        format_ident!("{}Entries", self.name)
    }

    /// The trait by which proxies have a method for each entry method.
    fn proxies(&self) -> TokenStream {
        let (ty, vis, name) = (&self.ty, &self.vis, self.trait_name());
        let (impl_generics, _, where_clause) = self.generics.split_for_impl();
        let docs = format!(
            "What can be sent to a `{}`: methods of its proxies. Who sends from another module imports it.",
            self.name
        );
        let methods = self.entries.iter().map(|entry| {
            let (signature, docs) = (entry.proxy_signature(), &entry.docs);
            let otherwise = docs.is_empty().then(|| format!("Sends `{}`.", entry.name));
            let otherwise = otherwise.map(|text| quote!(#[doc = #text]));
            let callback = entry.callback_signature().map(|signature| {
                let text = format!("Who gets a result by `{}`.", entry.name);
                quote!(#[doc = #text] #signature;)
            });
            quote!(#(#docs)* #otherwise #signature; #callback)
        });
        quote! {
            #[doc = #docs]
            #[allow(dead_code, clippy::too_many_arguments)]
            #vis trait #name #impl_generics: ::chares::Proxy<Chare = #ty> #where_clause {
                #(#methods)*
            }
        }
    }

    /// How messages are sent, and what is called for each.
    fn methods(&self) -> TokenStream {
        let (ty, name) = (&self.ty, self.trait_name());
        let proxy = Ident::new("P", Span::mixed_site());
        let mut with_proxy = self.generics.clone();
        with_proxy.params.push(parse_quote!(#proxy: ::chares::Proxy<Chare = #ty>));
        let (impl_generics, _, where_clause) = with_proxy.split_for_impl();
        let (_, type_generics, _) = self.generics.split_for_impl();
        let proxies = self.entries.iter().enumerate().map(|(number, entry)| entry.proxy_methods(number));
        let has_whens = !self.whens.is_empty();
        let calls = self
            .entries
            .iter()
            .enumerate()
            .map(|(number, entry)| entry.call((ty, &self.generics), number, has_whens));
        let turns = self.turns();
        quote! {
            #(#calls)*
            #turns

            impl #impl_generics #name #type_generics for #proxy #where_clause {
                #(#proxies)*
            }
        }
    }

    /// After each entry method: what has waited, as long as something is ready.
    fn turns(&self) -> Option<TokenStream> {
        if self.whens.is_empty() {
            return None;
        }
        let ty = &self.ty;
        let ctx = Ident::new("ctx", Span::call_site());
        let whens = self.whens.iter().map(|when| {
            let When { name, given, condition, ready } = when;
            let ready = match condition {
                Some(condition) => quote!(if #condition { #ready } else { ::core::option::Option::None }),
                None => quote!(#ready),
            };
            let (values, arguments) = (given.values(), given.arguments(&quote!(#ctx)));
            let found = Ident::new("found", Span::mixed_site());
            quote! {
                let #found = #ready;
                if let ::core::option::Option::Some(#values) = #found {
                    self.#name(#arguments);
                    continue;
                }
            }
        });
        let holds = self.entries.iter().filter_map(Entry::hold);
        let (impl_generics, _, where_clause) = self.generics.split_for_impl();
        Some(quote! {
            impl #impl_generics #ty #where_clause {
                #(#holds)*

                #[allow(unused_variables, clippy::nonminimal_bool)]
                fn __when(&mut self, #ctx: &mut ::chares::Ctx<'_, Self>) {
                    loop {
                        #(#whens)*
                        break;
                    }
                }
            }
        })
    }

    /// What the runtime knows of the type.
    fn tables(&self) -> TokenStream {
        let Self { ty, options, init, .. } = self;
        let markers = self.entries.iter().map(|entry| &entry.marker);
        let names = self.entries.iter().map(|entry| &entry.message_name);
        let name = match &options.name {
            Some(name) => quote!(::chares::renamed::<#ty>(#name)),
            None => quote!(::chares::type_name::<#ty>()),
        };
        let (impl_generics, _, where_clause) = self.generics.split_for_impl();
        let registered = self.generics.params.is_empty().then(|| {
            quote!(::chares::inventory::submit! { ::chares::Registered::of::<#ty>(::core::module_path!()) })
        });
        let reduced = self.reduced();
        let reducers = reduced.iter().map(|Reduced { ty, name }| {
            let name = match name {
                Some(name) => quote!(::std::string::String::from(#name)),
                None => quote!(::chares::type_name::<#ty>()),
            };
            quote!((#name, ::chares::reducer::<#ty>()))
        });
        let reduces = (0u16..).zip(&reduced).map(|(number, Reduced { ty: value, .. })| {
            quote_spanned!(value.span()=>
                impl #impl_generics ::chares::Reduces<#value> for #ty #where_clause { const INDEX: u16 = #number; }
            )
        });
        let listed = self.listed();
        let index = options.index.as_ref().map_or_else(|| quote!(u32), ToTokens::to_token_stream);
        let version = options.version.as_ref().map(|version| quote!(const VERSION: u16 = #version;));
        let (init_type, values) = (init.message(), init.values());
        let ctx = Ident::new("ctx", Span::mixed_site());
        let arguments = init.arguments(&ctx.to_token_stream());
        let arrived = self.arrived.as_ref().map(|arrived| arrived.method(ty));
        quote! {
            impl #impl_generics ::chares::EntryTable for #ty #where_clause {
                const ENTRIES: &'static [::chares::EntryMethod<Self>] = &[#(::chares::method::<#ty, #markers>()),*];

                fn name() -> ::std::string::String { #name }

                fn entry_names() -> ::std::vec::Vec<::std::string::String> {
                    ::std::vec![#(::std::string::String::from(#names)),*]
                }

                fn reducers() -> ::std::vec::Vec<(::std::string::String, ::chares::Reducer)> {
                    ::std::vec![#(#reducers),*]
                }
            }

            impl #impl_generics ::chares::Chare for #ty #where_clause {
                type Index = #index;
                type Init = #init_type;
                #version

                fn new(#values: #init_type, #ctx: &mut ::chares::Ctx<'_, Self>) -> Self {
                    <#ty>::new(#arguments)
                }

                #arrived
            }

            #(#reduces)*
            // Were there one only, it would be taken for the one that is meant, whatever is contributed.
            impl #impl_generics ::chares::Reduces<::chares::Nothing> for #ty #where_clause { const INDEX: u16 = u16::MAX; }
            #listed
            #registered
        }
    }

    /// What is combined: what the options list, and what entry methods answer that are asked of all.
    fn reduced(&self) -> Vec<Reduced> {
        let listed =
            self.options.reduces.iter().map(|one| Reduced { ty: one.ty.clone(), name: one.name.clone() });
        let answered = self.entries.iter().filter_map(|entry| entry.answer.as_ref());
        let answered = answered.filter(|answer| answer.is_combined.is_some());
        let mut all: Vec<Reduced> = listed.collect();
        for Answer { ty, .. } in answered {
            if !all.iter().any(|one| tight(&one.ty.to_token_stream()) == tight(&ty.to_token_stream())) {
                all.push(Reduced { ty: ty.clone(), name: None });
            }
        }
        all
    }

    /// An entry method that is given one value is found by its type too, as one that `entries!` lists, if no other is given
    /// the same.
    fn listed(&self) -> TokenStream {
        let plain = |entry: &&Entry| entry.answer.is_none() && entry.parameters.types.len() == 1;
        let given = |entry: &Entry| tight(&entry.parameters.message());
        let mut counts = BTreeMap::<String, usize>::new();
        self.entries.iter().filter(plain).for_each(|entry| *counts.entry(given(entry)).or_default() += 1);
        let ty = &self.ty;
        let (impl_generics, _, where_clause) = self.generics.split_for_impl();
        let single = self.entries.iter().filter(plain).filter(|entry| counts[&given(entry)] == 1);
        let listed = single.map(|entry| {
            let (message, marker) = (&entry.parameters.types[0], &entry.marker);
            let at = message.span();
            quote_spanned! {at=>
                impl #impl_generics ::chares::Listed<#message> for #ty #where_clause {
                    const INDEX: u16 = <#marker as ::chares::Method<#ty>>::INDEX;
                }
                impl #impl_generics ::chares::Entry<#message> for #ty #where_clause {
                    fn receive(&mut self, message: #message, ctx: &mut ::chares::Ctx<'_, Self>) {
                        <#marker as ::chares::Method<#ty>>::call(self, message, ctx);
                    }
                }
            }
        });
        quote!(#(#listed)*)
    }
}
