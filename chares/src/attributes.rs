//! The attributes by which a chare, its messages and its tasks are each said in one place.

/// Makes a chare of a type: said before its `struct` (or `enum`), and before an `impl` with its constructor and entry methods.
///
/// ```
/// use chares::prelude::*;
///
/// #[chare]
/// struct Square {
///     side: u64,
/// }
///
/// #[chare]
/// impl Square {
///     fn new(ctx: &mut Ctx<Self>, unit: u64) -> Self {
///         Self { side: unit * u64::from(ctx.index()) }
///     }
///
///     /// A message: others send it, `square.grow(ctx, 2)`, and nobody waits.
///     #[entry]
///     fn grow(&mut self, by: u64) {
///         self.side += by;
///     }
///
///     /// A question: one element is asked, `squares.at(3).side().ask(main)?`.
///     #[entry]
///     fn side(&self) -> u64 {
///         self.side
///     }
///
///     /// A question to all, whose answers are combined: `squares.area().ask(main)?`.
///     #[reduce]
///     fn area(&self) -> Sum<u64> {
///         Sum(self.side * self.side)
///     }
/// }
///
/// let run = Program::new("squares", "1.0").run_in_process(&InProcess::new(&[2, 1]), |main| {
///     let squares = main.array::<Square>(10, 2); // ten elements, spread over all PEs
///     assert_eq!(squares.at(3).side().ask(main)?, 6);
///     assert_eq!(squares.area().ask(main)?, Sum(4 * 285));
///     squares.grow(main, 1);
///     main.quiescence()?;
///     assert_eq!(squares.at(3).side().ask(main)?, 7);
///     Ok(())
/// });
/// run.unwrap();
/// ```
///
/// # Before the `struct`
/// Its state is packed by serde, which need not be named. A field that no machine can be sent is refused, and so is one that
/// serde would skip, as it would be lost on a move: it is a [`Scratch`](crate::Scratch) or a
/// [`Stopwatch`](crate::Stopwatch), or says `#[rebuild(function)]`, with a function that makes it anew where the chare
/// arrives; what depends on the other fields, the method with `#[arrived]` fills in then.
///
/// # Before the `impl`
/// The `impl` has a constructor `new`, which returns `Self`. It and all other methods may take a `&mut Ctx<Self>` at any
/// place; what else they take is sent. Several values are sent as a tuple: `main.array::<Block>(9, (64, true))` gives
/// elements to `fn new(cells: u32, is_hot: bool)`.
///
/// - **`#[entry]`** makes an entry method. All proxies get a method of its name, which takes a [`Cx`](crate::Cx) and the
///   values: an element is sent to, an array or group gets a broadcast, a section a multicast. With a
///   [priority](crate#priorities) it is `.with(-1)` before it. If it takes one value, `…_callback()` names it as what
///   [gets a result](crate::Callback) of that type. `#[entry(name = "Other")]` gives its messages another name.
/// - **`#[entry]` with an answer** is asked of one element, see [`Ask`](crate::Ask).
/// - **`#[reduce]`** is asked of one element or of all of an array or group, as a reduction to which each contributes its
///   answer; `#[reduce(ordered)]` as one that combines in [index order](crate::Ctx::contribute_ordered).
///   As all elements contribute in the same order, several such questions that are under way to one array come from one
///   asker; those of two askers may come to elements in different orders, which ends the run with a sentence.
/// - **`#[when(ready)]`** makes a method that is called after any entry method when `ready`, an expression that may use
///   `self` and `ctx`, is `Some`, with what is in it, and as often as that is so. `#[when(ready if condition)]` looks only if
///   a condition holds. With [`Inbox::take`](crate::Inbox::take) and [`Exchange::take`](crate::Exchange::take) it waits for
///   messages as `when` of Structured Dagger does in Charm++, and what has come is state that moves with the chare.
/// - **`#[collect(inbox, step, count)]`** is both in one line: an entry method that is called when `count` messages have come
///   for `step`, with the step and all of them. Each is sent with the step that it is for, `cells.at(2).heard(ctx, 7,
///   value)`, and held in `inbox`, an [`Inbox`](crate::Inbox) of the chare. With `if condition` behind it it waits for that
///   too. The method has to go on to another step, or it is called for ever if `count` is 0.
///
/// - **`#[arrived]`** makes a method that is called where the chare has [arrived](crate::Chare::arrived): when its state has been
///   unpacked, after a move or a restart, and before any entry method runs there. It makes anew what did not travel and
///   depends on the rest of the state, which a function of `#[rebuild(function)]` does not see.
///
/// ```
/// use chares::prelude::*;
///
/// /// Cells in a ring, which take the sum of both neighbours in each of three steps.
/// #[chare]
/// struct Cell {
///     value: u64,
///     step: u32,
///     heard: Inbox<u32, u64>,
/// }
///
/// #[chare]
/// impl Cell {
///     fn new(ctx: &mut Ctx<Self>) -> Self {
///         let cell = Self { value: u64::from(ctx.index()), step: 0, heard: Inbox::default() };
///         cell.tell(ctx);
///         cell
///     }
///
///     fn tell(&self, ctx: &mut Ctx<Self>) {
///         for other in [1, 4] {
///             ctx.array().at((ctx.index() + other) % 5).heard(ctx, self.step, self.value);
///         }
///     }
///
///     #[collect(self.heard, self.step, 2 if self.step < 3)]
///     fn heard(&mut self, ctx: &mut Ctx<Self>, step: u32, values: Vec<u64>) {
///         (self.value, self.step) = (values.iter().sum(), step + 1);
///         self.tell(ctx);
///     }
///
///     #[reduce(ordered)]
///     fn value(&self) -> chares::Gather<u64> {
///         chares::Gather(vec![self.value])
///     }
/// }
///
/// let run = Program::new("cells", "1.0").run_in_process(&InProcess::new(&[2, 1]), |main| {
///     let cells = main.array::<Cell>(5, ());
///     main.quiescence()?;
///     assert_eq!(cells.value().ask(main)?.0, [20, 13, 16, 19, 12]);
///     Ok(())
/// });
/// run.unwrap();
/// ```
///
/// Options, all in one `#[chare(…)]` before the `impl`: `index = [u32; 2]` for an array of
/// [other dimensions](crate::Chare::Index) than one; `reduces(Max<f64>, Sum<u64> as "Total")` lists what elements
/// [contribute](crate::Ctx::contribute) besides what `#[reduce]` gives; `name = "heat::Strip"`; `version = 2` for
/// [states saved](crate::Chare::VERSION) by an older one.
///
/// # What it writes
/// [`Chare`](trait@crate::Chare), the tables that [`entries!`](crate::entries!) makes, with messages that have the names of
/// entry methods, `GoOn` for `go_on`, and are the same bytes as a `struct` with these fields; and a trait, `SquareEntries`,
/// with the methods of proxies. That trait is as public as the first entry method that says so, and who sends from another
/// module imports it. An entry method that takes one value, if no other takes one of that type, is also found by it, as if
/// `entries!` had listed it: [`Element::send`](crate::Element::send), [`Exchange`](crate::Exchange) and
/// [`Ctx::all_gather`](crate::Ctx::all_gather) need that. Messages cost what they cost with `entries!`.
///
/// An executable knows such types without a [list](crate::Program::chare); nodes compare those that they know by name, as all
/// others, before they work together. A type with parameters is packed where the bounds in its own definition hold, and the
/// program lists each type that there will be, `.chare::<Grid<f32>>().chare::<Grid<f64>>()`:
///
/// ```
/// use chares::prelude::*;
/// use chares::Number;
///
/// #[chare]
/// struct Grid<T: Number> {
///     cells: Bulk<T>,
/// }
///
/// #[chare]
/// impl<T: Number> Grid<T> {
///     fn new(length: usize) -> Self {
///         Self { cells: Bulk::zeros(length) }
///     }
///
///     #[entry]
///     fn fill(&mut self, cells: Bulk<T>) {
///         self.cells = cells;
///     }
///
///     #[entry]
///     fn cells(&self) -> Bulk<T> {
///         self.cells.clone()
///     }
/// }
///
/// let program = Program::new("grids", "1.0").chare::<Grid<u8>>().chare::<Grid<f64>>();
/// let run = program.run_in_process(&InProcess::new(&[1, 1]), |main| {
///     let (bytes, floats) = (main.array::<Grid<u8>>(2, 7), main.array::<Grid<f64>>(2, 7));
///     floats.fill(main, Bulk::from_slice(&[0.5, 2.5]));
///     main.quiescence()?;
///     assert_eq!(floats.at(1).cells().ask(main)?[..], [0.5, 2.5]);
///     assert_eq!(bytes.at(1).cells().ask(main)?[..], [0; 7]);
///     Ok(())
/// });
/// run.unwrap();
/// ```
pub use chares_macros::chare;

/// Makes a type of the program's own that can be a part of messages and of state: it derives serde's traits, without
/// having the program name them. What serde would skip is refused.
///
/// ```
/// use chares::prelude::*;
///
/// #[message]
/// struct Bond {
///     atoms: [u32; 2],
///     strength: f64,
/// }
/// fn is_message<M: chares::Message>() {}
/// is_message::<Vec<Bond>>();
/// ```
pub use chares_macros::message;

/// Makes a [`Task`](crate::Task) of a function, for [`Driver::tasks`](crate::Driver::tasks), which takes several values as a
/// tuple. It can still be called as the function that it is; an executable knows it without a list, as the chare type
/// `Doer<name>`.
///
/// ```
/// use chares::prelude::*;
///
/// #[task]
/// fn power(base: u64, exponent: u32) -> u64 {
///     base.pow(exponent)
/// }
///
/// let run = Program::new("powers", "1.0").run_in_process(&InProcess::new(&[1, 1]), |main| {
///     let sum = main.tasks((1..=3).map(|base| (base, 2)), power).sum::<Result<u64, _>>()?;
///     assert_eq!(sum, power(1, 2) + power(2, 2) + power(3, 2));
///     Ok(())
/// });
/// run.unwrap();
/// ```
pub use chares_macros::task;
