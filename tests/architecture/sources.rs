//! The sources as a tree of modules with their declarations, imports and references.
//!
//! Receives the sources of all crates of the workspace: paths below their `src`, and texts. All crates form
//! one tree, because the folders there (the floors) have distinct names. Returns a [`Tree`] of modules with their children, items and
//! imports, and a [`Reference`] for each path in the code, with its line and whether it is test code.
//! `resolve` resolves the references, and `rules` judges them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// One source file.
pub(crate) struct SourceFile {
    /// The `src` folder of its crate, below the root of the workspace.
    pub(crate) folder: PathBuf,
    /// Path below that folder.
    pub(crate) path: PathBuf,
    pub(crate) text: String,
    /// Whether it is compiled for tests only.
    pub(crate) is_test: bool,
}

impl SourceFile {
    /// Returns the file's floor: `counter` for `counter/open.rs` and `counter.rs`.
    pub(crate) fn floor(&self) -> &str {
        entry(&self.path, 0)
    }
}

/// Returns the path component with this index, without `.rs`: the name of the entry in its folder. Empty for
/// the folder's own `mod.rs`.
pub(crate) fn entry(path: &Path, index: usize) -> &str {
    let part = path.iter().nth(index).and_then(|part| part.to_str()).unwrap_or_default();
    let part = part.strip_suffix(".rs").unwrap_or(part);
    if part == "mod" { "" } else { part }
}

/// A module: a file, or an inline module.
#[derive(Default)]
pub(crate) struct Module {
    /// Path from the crate root: `["record", "layout"]`.
    pub(crate) path: Vec<String>,
    /// Index of its file.
    pub(crate) file: usize,
    pub(crate) items: BTreeSet<String>,
    /// Type aliases: they are also in `aliases`, but defined here.
    pub(crate) type_aliases: BTreeSet<String>,
    /// Names for other paths: imports, renames, re-exports, type aliases.
    pub(crate) aliases: BTreeMap<String, Vec<String>>,
    /// Modules with a glob import (`use path::*`).
    pub(crate) globs: Vec<Vec<String>>,
}

/// A path that the code names.
pub(crate) struct Reference {
    /// The module that contains the reference.
    pub(crate) module: usize,
    pub(crate) line: usize,
    pub(crate) in_test: bool,
    /// Words of the path. The first is empty for a path that begins with `::`.
    pub(crate) path: Vec<String>,
}

/// Something in a file that a rule may object to, whatever it resolves to.
pub(crate) struct Finding {
    pub(crate) file: usize,
    pub(crate) line: usize,
    pub(crate) in_test: bool,
    pub(crate) what: Construct,
}

/// Constructs that hide names, or that are allowed in one place only.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Construct {
    PathAttribute,
    Include,
    ExternCrate,
    Unsafe,
    /// `println!` or a similar macro.
    Print(String),
    /// A number of this value.
    Number(u128),
    /// A call of a method with this name.
    Method(String),
    /// The file is not valid Rust.
    Unreadable(String),
}

/// All sources.
#[derive(Default)]
pub(crate) struct Tree {
    pub(crate) files: Vec<SourceFile>,
    pub(crate) modules: Vec<Module>,
    pub(crate) by_path: BTreeMap<Vec<String>, usize>,
    pub(crate) references: Vec<Reference>,
    pub(crate) findings: Vec<Finding>,
    /// Names of the crates that may be linked.
    pub(crate) crates: BTreeSet<String>,
}

/// Stand-in module for the binary, which is a separate crate.
pub(crate) const BINARY: &str = "{main}";

/// Returns the package's folder.
pub(crate) fn root() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into()).into()
}

/// Returns the files with this extension, sorted: paths below `folder`, and their texts.
pub(crate) fn files(folder: &Path, extension: &str) -> Vec<(PathBuf, String)> {
    let mut folders = vec![folder.to_owned()];
    let mut files = Vec::new();
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == extension) {
                let text = fs::read_to_string(&path).expect("a text in UTF-8");
                files.push((path.strip_prefix(folder).expect("below the folder").to_owned(), text));
            }
        }
    }
    files.sort();
    files
}

/// Returns the source folders of the workspace's crates, relative to its root.
pub(crate) fn source_folders(root: &Path) -> Vec<PathBuf> {
    let mut folders = vec![PathBuf::from("src")];
    for entry in fs::read_dir(root.join("crates")).expect("a folder") {
        folders.push(Path::new("crates").join(entry.expect("an entry").file_name()).join("src"));
    }
    folders.sort();
    folders
}

/// Returns the sources of all crates.
pub(crate) fn sources(root: &Path) -> Vec<SourceFile> {
    let mut sources = Vec::new();
    for folder in source_folders(root) {
        for (path, text) in files(&root.join(&folder), "rs") {
            sources.push(SourceFile { folder: folder.clone(), path, text, is_test: false });
        }
    }
    sources
}

impl Tree {
    /// Reads the workspace in this folder.
    pub(crate) fn of_workspace(root: &Path) -> Self {
        let manifest = fs::read_to_string(root.join("Cargo.toml")).expect("the workspace's manifest");
        Self::new(sources(root), dependencies(&manifest))
    }

    /// Builds a tree from sources, and the names of the external crates that they may use.
    pub(crate) fn new(sources: Vec<SourceFile>, crates: impl IntoIterator<Item = String>) -> Self {
        let mut tree = Self { crates: crates.into_iter().collect(), ..Self::default() };
        tree.crates.extend(["std", "core", "alloc"].map(str::to_owned));
        for source in sources {
            let module = module_path(&source.path);
            tree.files.push(source);
            tree.module(module, tree.files.len() - 1);
        }
        let mut only_tests = Vec::new();
        for file in 0..tree.files.len() {
            let text = tree.files[file].text.clone();
            let module = module_path(&tree.files[file].path);
            match syn::parse_file(&text) {
                Ok(ast) => {
                    let mut collector =
                        Collector { tree: &mut tree, file, module, tests: 0, only_tests: Vec::new() };
                    collector.visit_file(&ast);
                    only_tests.extend(collector.only_tests);
                }
                Err(error) => {
                    let what = Construct::Unreadable(error.to_string());
                    tree.findings.push(Finding { file, line: 1, in_test: false, what });
                }
            }
            if let Ok(tokens) = text.parse::<TokenStream>() {
                tree.find_unsafe(file, tokens);
            }
        }
        for file in &mut tree.files {
            let path = module_path(&file.path);
            file.is_test = only_tests.iter().any(|test: &Vec<String>| path.starts_with(test));
        }
        for reference in &mut tree.references {
            reference.in_test |= tree.files[tree.modules[reference.module].file].is_test;
        }
        for finding in &mut tree.findings {
            finding.in_test |= tree.files[finding.file].is_test;
        }
        tree
    }

    fn module(&mut self, path: Vec<String>, file: usize) -> usize {
        if let Some(number) = self.by_path.get(&path) {
            return *number;
        }
        self.modules.push(Module { path: path.clone(), file, ..Module::default() });
        self.by_path.insert(path, self.modules.len() - 1);
        self.modules.len() - 1
    }

    /// Finds `unsafe` in any form, also in macros and attributes.
    fn find_unsafe(&mut self, file: usize, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => self.find_unsafe(file, group.stream()),
                TokenTree::Ident(word) if word == "unsafe" || word == "unsafe_code" => {
                    let line = word.span().start().line;
                    self.findings.push(Finding { file, line, in_test: false, what: Construct::Unsafe });
                }
                _ => {}
            }
        }
    }
}

/// Returns the module path of a file.
fn module_path(path: &Path) -> Vec<String> {
    let mut parts: Vec<String> = path.with_extension("").iter().map(|p| p.to_string_lossy().into()).collect();
    match parts.last().map(String::as_str) {
        Some("main") if parts.len() == 1 => return vec![BINARY.to_owned()],
        Some("lib") if parts.len() == 1 => parts.clear(),
        Some("mod") => drop(parts.pop()),
        _ => {}
    }
    parts
}

/// Returns the names of the external crates that a workspace's manifest lists.
fn dependencies(manifest: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut inside = false;
    for line in manifest.lines() {
        if let Some(section) = line.strip_prefix('[') {
            inside = section.starts_with("workspace.dependencies");
        } else if inside && let Some((name, _)) = line.split_once('=') {
            names.push(name.trim().replace('-', "_"));
        }
    }
    names
}

/// Whether one of these attributes restricts the item to tests.
fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let text = match &attribute.meta {
            syn::Meta::List(list) => list.tokens.to_string(),
            _ => String::new(),
        };
        attribute.path().is_ident("test")
            || attribute.path().is_ident("cfg")
                && (text == "test"
                    || text.starts_with("all") && text.contains("test") && !text.contains("not"))
    })
}

fn attributes_of(item: &syn::Item) -> &[syn::Attribute] {
    macro_rules! of {
        ($($variant:ident)*) => { match item { $(syn::Item::$variant(item) => &item.attrs,)* _ => &[] } };
    }
    of!(Const Enum ExternCrate Fn ForeignMod Impl Macro Mod Static Struct Trait TraitAlias Type Union Use)
}

struct Collector<'t> {
    tree: &'t mut Tree,
    file: usize,
    /// Path of the current module.
    module: Vec<String>,
    /// Number of enclosing test-only items.
    tests: usize,
    /// Test-only modules that have their own files.
    only_tests: Vec<Vec<String>>,
}

impl Collector<'_> {
    fn here(&mut self) -> &mut Module {
        let number = self.tree.module(self.module.clone(), self.file);
        &mut self.tree.modules[number]
    }

    fn reference(&mut self, path: Vec<String>, span: Span) {
        let module = self.tree.module(self.module.clone(), self.file);
        let (line, in_test) = (span.start().line, self.tests > 0);
        self.tree.references.push(Reference { module, line, in_test, path });
    }

    fn find(&mut self, what: Construct, span: Span) {
        let (line, in_test) = (span.start().line, self.tests > 0);
        self.tree.findings.push(Finding { file: self.file, line, in_test, what });
    }

    fn import(&mut self, tree: &syn::UseTree, before: &[String]) {
        let with = |name: &syn::Ident| {
            let mut path = before.to_vec();
            path.push(name.to_string());
            path
        };
        match tree {
            syn::UseTree::Path(path) => self.import(&path.tree, &with(&path.ident)),
            syn::UseTree::Group(group) => group.items.iter().for_each(|item| self.import(item, before)),
            syn::UseTree::Glob(_) => {
                self.here().globs.push(before.to_vec());
                self.reference(before.to_vec(), tree.span());
            }
            syn::UseTree::Name(name) if name.ident == "self" => {
                self.bind(before.last().cloned().unwrap_or_default(), before.to_vec(), tree.span());
            }
            syn::UseTree::Name(name) => self.bind(name.ident.to_string(), with(&name.ident), tree.span()),
            syn::UseTree::Rename(name) if name.ident == "self" => {
                self.bind(name.rename.to_string(), before.to_vec(), tree.span());
            }
            syn::UseTree::Rename(name) => {
                self.bind(name.rename.to_string(), with(&name.ident), tree.span());
            }
        }
    }

    fn bind(&mut self, name: String, path: Vec<String>, span: Span) {
        self.here().aliases.insert(name, path.clone());
        self.reference(path, span);
    }

    /// Finds paths among unparsed macro tokens: `a::b`, `a::{b, c::d}`.
    fn scan(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let is = |at: usize, sign: char| matches!(tokens.get(at), Some(TokenTree::Punct(punct)) if punct.as_char() == sign);
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            let begins_with_colons = is(at, ':') && is(at + 1, ':');
            match token {
                TokenTree::Group(group) => {
                    self.scan(group.stream());
                    at += 1;
                }
                TokenTree::Literal(literal) => {
                    if let Ok(number) = syn::parse_str::<syn::LitInt>(&literal.to_string()) {
                        self.number(&number, literal.span());
                    }
                    at += 1;
                }
                TokenTree::Ident(_) | TokenTree::Punct(_) => {
                    let start = if begins_with_colons { at + 2 } else { at };
                    let Some(TokenTree::Ident(first)) = tokens.get(start) else {
                        at += 1;
                        continue;
                    };
                    let mut path = if begins_with_colons { vec![String::new()] } else { Vec::new() };
                    path.push(first.to_string());
                    let after_dot = start > 0 && is(start - 1, '.');
                    at = start + 1;
                    if is(at, '!') && is_print(&first.to_string()) {
                        self.find(Construct::Print(first.to_string()), first.span());
                    }
                    if is(at, '!') && is_include(&first.to_string()) {
                        self.find(Construct::Include, first.span());
                    }
                    let mut group = None;
                    while is(at, ':') && is(at + 1, ':') {
                        match tokens.get(at + 2) {
                            Some(TokenTree::Ident(word)) => path.push(word.to_string()),
                            Some(TokenTree::Group(inner)) => group = Some(inner.stream()),
                            _ => break,
                        }
                        at += 3;
                    }
                    match group {
                        Some(inner) => self.scan_list(&path, inner, first.span()),
                        None if path.len() > 1 && !after_dot => self.reference(path, first.span()),
                        None => {}
                    }
                }
            }
        }
    }

    /// Adds the paths in the braces of `path::{…}`.
    fn scan_list(&mut self, path: &[String], list: TokenStream, span: Span) {
        let Ok(tree) = syn::parse2::<syn::UseTree>(quote_group(list)) else { return };
        let mut paths = Vec::new();
        flatten(&tree, path.to_vec(), &mut paths);
        for path in paths {
            self.reference(path, span);
        }
    }

    fn number(&mut self, number: &syn::LitInt, span: Span) {
        // A hexadecimal number is an address or a bit.
        if !number.to_string().starts_with("0x")
            && let Ok(value) = number.base10_parse()
        {
            self.find(Construct::Number(value), span);
        }
    }
}

fn quote_group(list: TokenStream) -> TokenStream {
    TokenTree::Group(proc_macro2::Group::new(proc_macro2::Delimiter::Brace, list)).into()
}

fn flatten(tree: &syn::UseTree, mut before: Vec<String>, paths: &mut Vec<Vec<String>>) {
    match tree {
        syn::UseTree::Path(path) => {
            before.push(path.ident.to_string());
            flatten(&path.tree, before, paths);
        }
        syn::UseTree::Group(group) => {
            group.items.iter().for_each(|item| flatten(item, before.clone(), paths))
        }
        syn::UseTree::Glob(_) => paths.push(before),
        syn::UseTree::Name(syn::UseName { ident }) | syn::UseTree::Rename(syn::UseRename { ident, .. }) => {
            if ident != "self" {
                before.push(ident.to_string());
            }
            paths.push(before);
        }
    }
}

fn is_print(name: &str) -> bool {
    matches!(name, "println" | "print" | "eprintln" | "eprint" | "dbg")
}

fn is_include(name: &str) -> bool {
    name == "include"
}

impl<'ast> Visit<'ast> for Collector<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let is_test = is_for_tests(attributes_of(item));
        self.tests += usize::from(is_test);
        let name = match item {
            syn::Item::Const(item) => Some(&item.ident),
            syn::Item::Enum(item) => Some(&item.ident),
            syn::Item::Fn(item) => Some(&item.sig.ident),
            syn::Item::Macro(item) => item.ident.as_ref(),
            syn::Item::Static(item) => Some(&item.ident),
            syn::Item::Struct(item) => Some(&item.ident),
            syn::Item::Trait(item) => Some(&item.ident),
            syn::Item::TraitAlias(item) => Some(&item.ident),
            syn::Item::Type(item) => Some(&item.ident),
            syn::Item::Union(item) => Some(&item.ident),
            _ => None,
        };
        if let Some(name) = name {
            let name = name.to_string();
            self.here().items.insert(name);
        }
        visit::visit_item(self, item);
        self.tests -= usize::from(is_test);
    }

    fn visit_impl_item(&mut self, item: &'ast syn::ImplItem) {
        let is_test = match item {
            syn::ImplItem::Const(item) => is_for_tests(&item.attrs),
            syn::ImplItem::Fn(item) => is_for_tests(&item.attrs),
            _ => false,
        };
        self.tests += usize::from(is_test);
        visit::visit_impl_item(self, item);
        self.tests -= usize::from(is_test);
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        item.attrs.iter().for_each(|attribute| self.visit_attribute(attribute));
        self.module.push(item.ident.to_string());
        match &item.content {
            Some((_, items)) => {
                self.here();
                items.iter().for_each(|item| self.visit_item(item));
            }
            None if self.tests > 0 => self.only_tests.push(self.module.clone()),
            None => {}
        }
        self.module.pop();
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let before = if item.leading_colon.is_some() { vec![String::new()] } else { Vec::new() };
        self.import(&item.tree, &before);
    }

    fn visit_item_extern_crate(&mut self, item: &'ast syn::ItemExternCrate) {
        self.find(Construct::ExternCrate, item.span());
        let name = item.rename.as_ref().map_or(&item.ident, |(_, rename)| rename).to_string();
        self.bind(name, vec![String::new(), item.ident.to_string()], item.span());
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        // A type alias re-exports its target: code that names the alias names the target.
        if let syn::Type::Path(path) = &*item.ty
            && path.qself.is_none()
        {
            let name = item.ident.to_string();
            let words = words_of(&path.path);
            if words.last() != Some(&name) || words.len() > 1 {
                let here = self.here();
                here.items.remove(&name);
                here.type_aliases.insert(name.clone());
                here.aliases.insert(name, words);
            }
        }
        visit::visit_item_type(self, item);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let words = words_of(path);
        self.reference(words, path.span());
        visit::visit_path(self, path);
    }

    /// `pub(in crate::record)` is not a reference to another module.
    fn visit_vis_restricted(&mut self, _: &'ast syn::VisRestricted) {}

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        if let Some(name) = call.path.segments.last() {
            let name = name.ident.to_string();
            if is_print(&name) {
                self.find(Construct::Print(name), call.span());
            } else if is_include(&name) {
                self.find(Construct::Include, call.span());
            }
        }
        visit::visit_macro(self, call);
        self.scan(call.tokens.clone());
    }

    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        if attribute.path().is_ident("doc") {
            return;
        }
        if attribute.path().is_ident("path") {
            self.find(Construct::PathAttribute, attribute.span());
        }
        visit::visit_attribute(self, attribute);
        if let syn::Meta::List(list) = &attribute.meta {
            if list.tokens.to_string().contains("path =") && attribute.path().is_ident("cfg_attr") {
                self.find(Construct::PathAttribute, attribute.span());
            }
            self.scan(list.tokens.clone());
            // `#[derive(Serialize)]` refers to an import.
            if attribute.path().is_ident("derive") {
                for token in list.tokens.clone() {
                    if let TokenTree::Ident(word) = token {
                        self.reference(vec![word.to_string()], word.span());
                    }
                }
            }
        }
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        self.find(Construct::Method(call.method.to_string()), call.method.span());
        visit::visit_expr_method_call(self, call);
    }

    fn visit_lit_int(&mut self, number: &'ast syn::LitInt) {
        self.number(number, number.span());
    }
}

fn words_of(path: &syn::Path) -> Vec<String> {
    let colons = path.leading_colon.map(|_| String::new());
    colons.into_iter().chain(path.segments.iter().map(|segment| segment.ident.to_string())).collect()
}
