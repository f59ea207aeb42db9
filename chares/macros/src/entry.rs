//! Entry methods: what is said of one, how proxies send to it, and how it is called.

use crate::signature::{Parameters, answer, demand, demand_receiver, is_message};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{
    Attribute, Error, Expr, GenericArgument, Generics, ImplItemFn, LitStr, PathArguments, Result, Token, Type,
};

/// What proxies have methods of already, which would be called in place of entry methods of these names.
const TAKEN: [&str; 17] = [
    "as_array",
    "at",
    "broadcast",
    "broadcast_with",
    "callback",
    "clone",
    "deliver",
    "is_empty",
    "len",
    "new",
    "on",
    "scatter",
    "section",
    "send",
    "send_with",
    "shape",
    "with",
];

/// What stands in `#[collect(inbox, step, count if condition)]`.
pub(crate) struct Collect {
    inbox: Expr,
    step: Expr,
    count: Expr,
    condition: Option<Expr>,
}

/// What stands in `#[when(ready if condition)]`.
pub(crate) struct Ready {
    ready: Expr,
    condition: Option<Expr>,
}

impl Parse for Ready {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        Ok(Self { ready: input.parse()?, condition: condition(input)? })
    }
}

impl Parse for Collect {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let inbox = input.parse()?;
        input.parse::<Token![,]>()?;
        let step = input.parse()?;
        input.parse::<Token![,]>()?;
        let count = input.parse()?;
        Ok(Self { inbox, step, count, condition: condition(input)? })
    }
}

fn condition(input: ParseStream<'_>) -> Result<Option<Expr>> {
    input.parse::<Option<Token![if]>>()?.map(|_| input.parse()).transpose()
}

/// What a method is for, by its attribute, which is taken off.
pub(crate) enum Role {
    /// An entry method, with the name that its messages have if it is not made of its own.
    Entry(Option<LitStr>),
    /// An entry method whose answers from all elements are combined, in their order or not.
    Reduce { is_ordered: bool },
    /// Called when what it waits for is there.
    When(Box<Ready>),
    /// An entry method that is called when all messages of a step have come.
    Collect(Box<Collect>),
    /// Called where the chare has arrived.
    Arrived,
    /// The program's own.
    Plain,
}

impl Role {
    pub(crate) fn take(method: &mut ImplItemFn) -> Result<Self> {
        let is_ours = |attribute: &Attribute| {
            ["entry", "reduce", "when", "collect", "arrived"]
                .iter()
                .any(|name| attribute.path().is_ident(name))
        };
        let (ours, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut method.attrs).into_iter().partition(is_ours);
        method.attrs = others;
        let [attribute] = &ours[..] else {
            return match ours.get(1) {
                Some(second) => Err(Error::new_spanned(
                    second,
                    "a method has one of `entry`, `reduce`, `collect`, `when` and `arrived`",
                )),
                None => Ok(Self::Plain),
            };
        };
        if let Some(cfg) =
            method.attrs.iter().find(|a| a.path().is_ident("cfg") || a.path().is_ident("cfg_attr"))
        {
            return Err(Error::new_spanned(
                cfg,
                "all nodes have the same entry methods: `cfg` goes inside the method",
            ));
        }
        if attribute.path().is_ident("arrived") {
            return attribute.meta.require_path_only().map(|_| Self::Arrived);
        }
        if attribute.path().is_ident("when") {
            return attribute.parse_args().map(|ready| Self::When(Box::new(ready)));
        }
        if attribute.path().is_ident("collect") {
            return attribute.parse_args().map(|collect| Self::Collect(Box::new(collect)));
        }
        let (mut name, mut is_ordered) = (None, false);
        let is_entry = attribute.path().is_ident("entry");
        if !matches!(attribute.meta, syn::Meta::Path(_)) {
            attribute.parse_nested_meta(|meta| match () {
                () if is_entry && meta.path.is_ident("name") => {
                    meta.value()?.parse().map(|given| name = Some(given))
                }
                () if !is_entry && meta.path.is_ident("ordered") => {
                    is_ordered = true;
                    Ok(())
                }
                () if is_entry => Err(meta.error("an entry method has no option but `name = \"…\"`")),
                () => Err(meta.error("a reduction has no option but `ordered`")),
            })?;
        }
        Ok(if is_entry { Self::Entry(name) } else { Self::Reduce { is_ordered } })
    }
}

/// An entry method.
pub(crate) struct Entry {
    pub(crate) name: Ident,
    pub(crate) docs: Vec<Attribute>,
    pub(crate) parameters: Parameters,
    pub(crate) answer: Option<Answer>,
    /// Where its messages are held until all of a step are there.
    pub(crate) inbox: Option<Expr>,
    /// The name of its messages.
    pub(crate) message_name: String,
    /// The type that stands for it where it is called; nothing in the program has its name.
    pub(crate) marker: Ident,
}

/// What an entry method answers.
pub(crate) struct Answer {
    pub(crate) ty: Type,
    /// Whether those of all elements are combined, and if so, whether in their order.
    pub(crate) is_combined: Option<bool>,
}

/// A method that is called when what it waits for is there.
pub(crate) struct When {
    pub(crate) name: Ident,
    pub(crate) given: Parameters,
    pub(crate) condition: Option<Expr>,
    pub(crate) ready: Expr,
}

impl Entry {
    /// `is_combined`: of an answer that elements give, whether those of all are combined, and if so, whether in their order.
    pub(crate) fn read(
        method: &ImplItemFn,
        chare: &TokenStream,
        given: Option<LitStr>,
        is_combined: Option<bool>,
    ) -> Result<Self> {
        let (signature, name) = (&method.sig, method.sig.ident.clone());
        if TAKEN.iter().any(|taken| name == taken) {
            let why = format!(
                "an entry method cannot be called `{name}`: proxies have something of that name already"
            );
            return Err(Error::new(name.span(), why));
        }
        demand_receiver(signature)?;
        let answer = answer(signature, chare)?.map(|ty| Answer { ty, is_combined });
        if answer.is_none() && is_combined.is_some() {
            let why = format!("`{name}` gives nothing that could be combined: `-> Sum<u64>`, for example");
            return Err(Error::new(name.span(), why));
        }
        let is_doc = |attribute: &&Attribute| attribute.path().is_ident("doc");
        let message_name = given.map_or_else(|| camel_case(&name.to_string()), |given| given.value());
        Ok(Self {
            docs: method.attrs.iter().filter(is_doc).cloned().collect(),
            parameters: Parameters::of(signature, chare)?,
            answer,
            inbox: None,
            message_name,
            marker: Ident::new(&format!("Entry_{name}"), Span::mixed_site()),
            name,
        })
    }

    /// An entry method that is given all messages of a step at once: each is sent with its step, and held until then.
    pub(crate) fn collecting(
        method: &ImplItemFn,
        chare: &TokenStream,
        collect: Collect,
    ) -> Result<(Self, When)> {
        let mut entry = Self::read(method, chare, None, None)?;
        let given = &method.sig.inputs;
        let wrong = || {
            let why = "what collects is given a step and all that came for it: `step: u32, rows: Vec<Row>`";
            Error::new_spanned(given, why)
        };
        let [_, all] = &entry.parameters.types[..] else { return Err(wrong()) };
        entry.parameters.types[1] = element_of(all).ok_or_else(wrong)?;
        if let Some(Answer { ty, .. }) = &entry.answer {
            return Err(Error::new_spanned(ty, "what collects answers nobody: it was sent by several"));
        }
        let Collect { inbox, step, count, condition } = collect;
        entry.inbox = Some(inbox.clone());
        let now = Ident::new("now", Span::mixed_site());
        let ready = quote_spanned!(step.span()=> {
            let #now = #step;
            #inbox.take(&#now, #count).map(|all| (#now, all))
        });
        let given = entry.parameters.clone();
        Ok((entry, When { name: method.sig.ident.clone(), given, condition, ready: syn::parse2(ready)? }))
    }

    /// The method that proxies have for it.
    pub(crate) fn proxy_signature(&self) -> TokenStream {
        let Parameters { names, types, .. } = &self.parameters;
        let (name, cx) = (&self.name, Ident::new("cx", Span::mixed_site()));
        let Some(Answer { ty, is_combined }) = &self.answer else {
            return quote!(fn #name(&self, #cx: &mut impl ::chares::Cx #(, #names: #types)*));
        };
        let whom = if is_combined.is_some() { quote!(Askable) } else { quote!(One) };
        let message = self.parameters.message();
        quote!(fn #name(&self #(, #names: #types)*) -> ::chares::Ask<Self, #message, #ty> where Self: ::chares::#whom)
    }

    /// The method that says who gets a result by it: one that is given one value can.
    pub(crate) fn callback_signature(&self) -> Option<TokenStream> {
        let [ty] = &self.parameters.types[..] else { return None };
        let name = format_ident!("{}_callback", self.name);
        self.answer.is_none().then(|| quote!(fn #name(&self) -> ::chares::Callback<#ty>))
    }

    /// That its values can be sent, asked where they stand.
    pub(crate) fn checks(&self) -> TokenStream {
        let sent = self.parameters.types.iter().map(is_message);
        let answered = self.answer.iter().map(|Answer { ty, is_combined }| match is_combined {
            Some(_) => demand(ty, "Reduced"),
            None => is_message(ty),
        });
        quote!(#(#sent)* #(#answered)*)
    }

    /// What proxies do to send to it.
    pub(crate) fn proxy_methods(&self, number: usize) -> TokenStream {
        let (signature, names) = (self.proxy_signature(), &self.parameters.names);
        let number = u16::try_from(number).unwrap_or(u16::MAX);
        let cx = Ident::new("cx", Span::mixed_site());
        let message = match &names[..] {
            [one] => quote!(#one),
            _ => quote!((#(#names,)*)),
        };
        let body = match self.answer {
            None => quote!(::chares::Proxy::deliver(self, #cx, #number, 0, #message);),
            Some(_) => quote!(::chares::Ask::new(self, #number, #message)),
        };
        let callback = self
            .callback_signature()
            .map(|signature| quote!(#signature { ::chares::Proxy::callback(self, #number) }));
        quote!(#signature { #body } #callback)
    }

    fn hold_name(&self) -> Ident {
        format_ident!("__hold_{}", self.name)
    }

    /// The method by which what it collects is held.
    pub(crate) fn hold(&self) -> Option<TokenStream> {
        let (inbox, name, types) = (self.inbox.as_ref()?, self.hold_name(), &self.parameters.types);
        let (step, message) = (&types[0], &types[1]);
        let at = inbox.span();
        let held = quote_spanned!(at=> #inbox.hold(step, message););
        Some(quote! {
            fn #name(&mut self, step: #step, message: #message) {
                #held
            }
        })
    }

    /// How it is called with what was sent; `has_whens`: then what waits may go on.
    pub(crate) fn call(
        &self,
        (chare, generics): (&TokenStream, &Generics),
        number: usize,
        has_whens: bool,
    ) -> TokenStream {
        let (impl_generics, _, where_clause) = generics.split_for_impl();
        let (name, marker, message) = (&self.name, &self.marker, self.parameters.message());
        let local = |name| Ident::new(name, Span::mixed_site());
        let (this, ctx, reply, answer) = (local("this"), local("ctx"), local("reply"), local("answer"));
        let (values, arguments) =
            (self.parameters.values(), self.parameters.arguments(&ctx.to_token_stream()));
        let hold = self.hold_name();
        let arguments = if self.inbox.is_some() { self.parameters.arguments_alone() } else { arguments };
        let arguments = if arguments.is_empty() { arguments } else { quote!(, #arguments) };
        let number = u16::try_from(number).unwrap_or(u16::MAX);
        let (message, values, call) = match &self.answer {
            None if self.inbox.is_some() => (message, values, quote!(<#chare>::#hold(#this #arguments);)),
            None => (message, values, quote!(<#chare>::#name(#this #arguments);)),
            Some(Answer { ty, is_combined }) => {
                let give = match is_combined {
                    None => quote!(give(#ctx, #answer)),
                    Some(is_ordered) => quote!(combine(#ctx, #answer, #is_ordered)),
                };
                let call = quote!(let #answer = <#chare>::#name(#this #arguments); #reply.#give;);
                (quote!((#message, ::chares::Reply<#ty>)), quote!((#values, #reply)), call)
            }
        };
        let whens = has_whens.then(|| quote!(<#chare>::__when(#this, #ctx);));
        quote! {
            #[allow(non_camel_case_types)]
            struct #marker;

            impl #impl_generics ::chares::Method<#chare> for #marker #where_clause {
                type Message = #message;
                const INDEX: u16 = #number;

                #[inline]
                fn call(#this: &mut #chare, #values: #message, #ctx: &mut ::chares::Ctx<'_, #chare>) {
                    #call
                    #whens
                }
            }
        }
    }
}

impl When {
    pub(crate) fn read(method: &ImplItemFn, Ready { ready, condition }: Ready) -> Result<Self> {
        demand_receiver(&method.sig)?;
        let name = method.sig.ident.clone();
        let parameters = Parameters::of(&method.sig, &TokenStream::new())?;
        if parameters.types.len() != 1 {
            let why = format!(
                "`{name}` is given what its `when` has found: it has one parameter besides `self` and `ctx`"
            );
            return Err(Error::new_spanned(&method.sig.inputs, why));
        }
        Ok(Self { name, given: parameters, condition, ready })
    }
}

/// What a `Vec` has.
fn element_of(ty: &Type) -> Option<Type> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last().filter(|last| last.ident == "Vec")?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match arguments.args.first()? {
        GenericArgument::Type(ty) => Some(ty.clone()),
        _ => None,
    }
}

/// `go_on` becomes `GoOn`.
fn camel_case(name: &str) -> String {
    let words = name.split('_').filter(|word| !word.is_empty());
    let capital = |word: &str| {
        word.chars().take(1).flat_map(char::to_uppercase).chain(word.chars().skip(1)).collect::<String>()
    };
    words.map(capital).collect()
}
