//! Meshes of Gmsh in files of version 4.1, ASCII (C. Geuzaine, J.-F. Remacle, Gmsh reference manual, section on the MSH file
//! format). Nothing in a file is trusted: counts are bounded by what follows, tags are looked up.

use super::mesh::Mesh;
use super::shape::Shape;
use crate::text_file::{FileError, read_text, wrong_line};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// What is wrong with a mesh.
pub type MshError = FileError;

/// Most groups of the boundary: each is a bit.
const GROUPS_MAX: usize = 32;

/// Reads a mesh.
///
/// # Errors
/// It cannot be read, or what is wrong in which line.
pub fn read(file: &Path) -> Result<Mesh, MshError> {
    let text = read_text(file)?;
    parse(&text).map_err(|(line, sentence)| wrong_line(file, line, sentence))
}

/// A line, from 1, and what is wrong with it.
type Wrong = (usize, String);

/// A mesh from the text of a file.
///
/// # Errors
/// What is wrong in which line.
pub fn parse(text: &str) -> Result<Mesh, Wrong> {
    let mut file = Sections { lines: text.lines().enumerate().peekable(), last: 0 };
    let mut read = Read::default();
    while let Some((line, name)) = file.begin()? {
        match name {
            "MeshFormat" => read.format(&mut file)?,
            "PhysicalNames" => read.names(&mut file)?,
            "Entities" => read.entities(&mut file)?,
            "Nodes" => read.nodes(&mut file)?,
            "Elements" => read.elements(&mut file)?,
            "PartitionedEntities" => {
                return Err((line, "the mesh is partitioned: save it in one part".into()));
            }
            // What follows is of no use here.
            _ => {
                file.end(name)?;
                continue;
            }
        }
        file.end(name)?;
    }
    read.mesh(file.last)
}

/// Lines of a file, section by section.
struct Sections<'a, L: Iterator<Item = (usize, &'a str)>> {
    lines: std::iter::Peekable<L>,
    /// The line that was read last, from 1.
    last: usize,
}

impl<'a, L: Iterator<Item = (usize, &'a str)>> Sections<'a, L> {
    fn line(&mut self) -> Option<&'a str> {
        loop {
            let (at, line) = self.lines.next()?;
            self.last = at + 1;
            if !line.trim().is_empty() {
                return Some(line.trim());
            }
        }
    }

    fn wrong<T>(&self, sentence: impl Into<String>) -> Result<T, Wrong> {
        Err((self.last.max(1), sentence.into()))
    }

    /// The name of the next section.
    fn begin(&mut self) -> Result<Option<(usize, &'a str)>, Wrong> {
        match self.line() {
            None => Ok(None),
            Some(line) => match line.strip_prefix('$') {
                Some(name) => Ok(Some((self.last, name))),
                None => {
                    self.wrong("a section is expected here, such as $MeshFormat: is this a mesh of Gmsh?")
                }
            },
        }
    }

    /// Goes on behind the end of a section.
    fn end(&mut self, name: &str) -> Result<(), Wrong> {
        while let Some(line) = self.line() {
            if line.strip_prefix("$End") == Some(name) {
                return Ok(());
            }
        }
        self.wrong(format!("${name} does not end with $End{name}: the file has been cut off"))
    }

    /// Refuses what else there is in a section of which all that it announces has been read.
    fn is_all(&mut self, name: &str) -> Result<(), Wrong> {
        while self.lines.next_if(|(_, line)| line.trim().is_empty()).is_some() {}
        match self.lines.peek() {
            Some((at, line)) if !line.trim().starts_with('$') => {
                Err((at + 1, format!("${name} has more lines than its blocks announce")))
            }
            _ => Ok(()),
        }
    }

    /// The numbers of the next line.
    fn numbers<T: std::str::FromStr>(&mut self, what: &str) -> Result<Vec<T>, Wrong> {
        match self.line() {
            Some(line) if !line.starts_with('$') => {
                let words = line.split_whitespace();
                let number = |word: &str| {
                    word.parse::<T>().map_err(|_| (self.last, format!("'{word}' is no number of {what}")))
                };
                words.map(number).collect()
            }
            _ => self.wrong(format!("a line with {what} is missing here")),
        }
    }

    /// The next line has so many numbers at least.
    fn at_least<T: std::str::FromStr>(&mut self, count: usize, what: &str) -> Result<Vec<T>, Wrong> {
        let numbers = self.numbers(what)?;
        if numbers.len() < count {
            return self.wrong(format!("{what}: {count} numbers are expected, there are {}", numbers.len()));
        }
        Ok(numbers)
    }
}

/// Whether there are as many as the first line of a section says.
fn announced(line: usize, said: u64, found: usize, what: &str) -> Result<(), Wrong> {
    if said == found as u64 {
        return Ok(());
    }
    Err((line, format!("{said} {what} are announced here, and there are {found}")))
}

/// What has been read.
#[derive(Default)]
struct Read {
    has_format: bool,
    /// Names of physical groups, by dimension and number.
    names: HashMap<(usize, i64), String>,
    /// The physical groups of each entity, by dimension and tag.
    entities: HashMap<(usize, i64), Vec<i64>>,
    /// Place of each node, by tag.
    nodes: HashMap<u64, [f64; 3]>,
    /// Elements by type and entity, with their line.
    blocks: Vec<Block>,
}

struct Block {
    line: usize,
    entity: (usize, i64),
    shape: Shape,
    /// Tags of nodes, in our order.
    nodes: Vec<u64>,
}

impl Read {
    fn format<'a>(
        &mut self,
        file: &mut Sections<'a, impl Iterator<Item = (usize, &'a str)>>,
    ) -> Result<(), Wrong> {
        let numbers: Vec<f64> = file.at_least(3, "the format")?;
        if numbers[0] != 4.1 {
            return file.wrong(format!(
                "the mesh is of version {}: save it as 4.1 (gmsh -format msh41)",
                numbers[0]
            ));
        }
        if numbers[1] != 0.0 {
            return file.wrong("the mesh is binary: save it as ASCII (gmsh -setnumber Mesh.Binary 0)");
        }
        self.has_format = true;
        Ok(())
    }

    fn names<'a>(
        &mut self,
        file: &mut Sections<'a, impl Iterator<Item = (usize, &'a str)>>,
    ) -> Result<(), Wrong> {
        let count: usize = file.at_least::<usize>(1, "the count of names")?[0];
        for _ in 0..count {
            let Some(line) = file.line() else { return file.wrong("names are missing here") };
            let parts: Vec<&str> = line.splitn(3, char::is_whitespace).collect();
            let named = match parts[..] {
                [dim, tag, name] => dim.parse().ok().zip(tag.parse().ok()).map(|key| (key, name)),
                _ => None,
            };
            let Some((key, name)) = named else {
                return file.wrong(format!(
                    "'{line}' is no name: a dimension, a number and a name in quotes are expected"
                ));
            };
            self.names.insert(key, name.trim().trim_matches('"').to_owned());
        }
        Ok(())
    }

    fn entities<'a>(
        &mut self,
        file: &mut Sections<'a, impl Iterator<Item = (usize, &'a str)>>,
    ) -> Result<(), Wrong> {
        let counts: Vec<usize> = file.at_least(4, "the counts of entities")?;
        for (dim, count) in counts[..4].iter().enumerate() {
            for _ in 0..*count {
                let numbers: Vec<f64> = file.at_least(if dim == 0 { 5 } else { 8 }, "an entity")?;
                // A point has its place, others the corners of a box around them.
                let groups = if dim == 0 { 4 } else { 7 };
                let count = numbers[groups];
                let given = numbers.len() - groups - 1;
                if !(count >= 0.0 && count <= given as f64) {
                    return file
                        .wrong(format!("an entity has {count} physical groups, and {given} numbers follow"));
                }
                let of_entity = numbers[groups + 1..][..count as usize].iter().map(|&group| group as i64);
                self.entities.insert((dim, numbers[0] as i64), of_entity.collect());
            }
        }
        Ok(())
    }

    fn nodes<'a>(
        &mut self,
        file: &mut Sections<'a, impl Iterator<Item = (usize, &'a str)>>,
    ) -> Result<(), Wrong> {
        let counts: Vec<u64> = file.at_least(4, "the counts of nodes")?;
        let line = file.last;
        for _ in 0..counts[0] {
            let block: Vec<i64> = file.at_least(4, "a block of nodes")?;
            let mut tags = Vec::new();
            for _ in 0..block[3] {
                tags.push(file.at_least::<u64>(1, "the number of a node")?[0]);
            }
            for tag in tags {
                let place: Vec<f64> = file.at_least(3, "the place of a node")?;
                if place.iter().any(|x| !x.is_finite()) {
                    return file.wrong(format!("the place of node {tag} is no finite number"));
                }
                if self.nodes.insert(tag, [place[0], place[1], place[2]]).is_some() {
                    return file.wrong(format!("node {tag} comes twice"));
                }
            }
        }
        file.is_all("Nodes")?;
        announced(line, counts[1], self.nodes.len(), "nodes")
    }

    fn elements<'a>(
        &mut self,
        file: &mut Sections<'a, impl Iterator<Item = (usize, &'a str)>>,
    ) -> Result<(), Wrong> {
        let counts: Vec<u64> = file.at_least(4, "the counts of elements")?;
        let (begin, mut count) = (file.last, 0);
        for _ in 0..counts[0] {
            let block: Vec<i64> = file.at_least(4, "a block of elements")?;
            let line = file.last;
            let Some((shape, order)) = kind(block[2]) else {
                return file.wrong(format!(
                    "elements of type {} are not known here: lines, triangles and tetrahedra of order 1 and 2, \
                     quadrilaterals of 4 and 9 nodes and hexahedra of 8 are",
                    block[2]
                ));
            };
            let mut nodes = Vec::new();
            for _ in 0..block[3] {
                let numbers: Vec<u64> = file.at_least(1 + shape.nodes(), "an element")?;
                if let Some(tag) = numbers[1..=shape.nodes()].iter().find(|tag| !self.nodes.contains_key(tag))
                {
                    return file
                        .wrong(format!("element {} has node {tag}, which there is none of", numbers[0]));
                }
                nodes.extend(order.iter().map(|&at| numbers[1 + at]));
                count += 1;
            }
            let entity = (block[0].clamp(0, 3) as usize, block[1]);
            self.blocks.push(Block { line, entity, shape, nodes });
        }
        file.is_all("Elements")?;
        announced(begin, counts[1], count, "elements")
    }

    /// The elements of the highest dimension with their nodes, and the groups of their boundary.
    fn mesh(self, last: usize) -> Result<Mesh, Wrong> {
        if !self.has_format {
            return Err((last.max(1), "there is no $MeshFormat: is this a mesh of Gmsh?".into()));
        }
        let dim = self.blocks.iter().map(|block| block.shape.dim).max().unwrap_or(0);
        let mut bodies = self.blocks.iter().filter(|block| block.shape.dim == dim);
        let Some(first) = bodies.next().filter(|_| dim >= 2) else {
            return Err((last.max(1), "there are no elements of two or three dimensions".into()));
        };
        if let Some(other) = bodies.find(|block| block.shape != first.shape) {
            return Err((other.line, "elements are of several types: mesh all with one".into()));
        }
        let mut mesh = Mesh {
            shape: first.shape,
            points: Vec::new(),
            elements: Vec::new(),
            faces: Vec::new(),
            face_groups: Vec::new(),
            groups: Vec::new(),
        };
        // Nodes are numbered in the order of their tags, those that no element has left out.
        let used = self.blocks.iter().filter(|block| block.shape.dim == dim).flat_map(|block| &block.nodes);
        let mut numbers: BTreeMap<u64, u32> = used.map(|&tag| (tag, 0)).collect();
        if u32::try_from(numbers.len()).is_err() {
            return Err((last.max(1), "there are 2^32 nodes or more".into()));
        }
        (0..).zip(numbers.values_mut()).for_each(|(number, to)| *to = number);
        mesh.points = numbers.keys().map(|tag| self.nodes[tag]).collect();
        if dim == 2 && mesh.points.iter().any(|point| point[2] != mesh.points[0][2]) {
            return Err((
                last.max(1),
                "the mesh is a surface in space: it must lie in a plane of one z".into(),
            ));
        }
        for block in self.blocks.iter().filter(|block| block.shape.dim == dim) {
            mesh.elements.extend(block.nodes.iter().map(|tag| numbers[tag]));
        }
        self.add_groups(&mut mesh, dim, &numbers)?;
        mesh.turn().map_err(|element| {
            (last.max(1), format!("element {element} of {dim} dimensions, counted from 0, is flat"))
        })?;
        Ok(mesh)
    }

    fn add_groups(&self, mesh: &mut Mesh, dim: usize, numbers: &BTreeMap<u64, u32>) -> Result<(), Wrong> {
        for block in self.blocks.iter().filter(|block| block.shape.dim + 1 == dim) {
            for tag in self.entities.get(&block.entity).into_iter().flatten() {
                let key = (dim - 1, tag.abs());
                let name = self.names.get(&key).cloned().unwrap_or_else(|| tag.abs().to_string());
                let known = mesh.groups.iter().position(|other| *other == name);
                let group = known.unwrap_or_else(|| {
                    mesh.groups.push(name);
                    mesh.groups.len() - 1
                });
                if group >= GROUPS_MAX {
                    return Err((
                        block.line,
                        format!("there are more than {GROUPS_MAX} groups of the boundary"),
                    ));
                }
                let face = block.shape.nodes();
                let (of_mesh, is_line) = (mesh.shape.face(), dim == 2);
                if block.shape.order != of_mesh.order || !is_line && block.shape != of_mesh {
                    return Err((
                        block.line,
                        "faces are not those of the elements: mesh all with one order".into(),
                    ));
                }
                for nodes in block.nodes.chunks_exact(face) {
                    let own: Option<Vec<u32>> = nodes.iter().map(|tag| numbers.get(tag).copied()).collect();
                    let Some(own) = own else {
                        return Err((block.line, "a face has nodes that no element has".into()));
                    };
                    // The middle of a line comes last in a file, and between the ends in a product.
                    let is_between = is_line && of_mesh == Shape::product(2, 1);
                    let order = if is_between { [0, 2, 1] } else { [0, 1, 2] };
                    match is_line {
                        true => mesh.faces.extend(order[..face].iter().map(|&at| own[at])),
                        false => mesh.faces.extend(own),
                    }
                    mesh.face_groups.push(group as u32);
                }
            }
        }
        Ok(())
    }
}

/// The shape of a type of elements of Gmsh, and which of its nodes each of ours is.
fn kind(number: i64) -> Option<(Shape, Vec<usize>)> {
    let as_they_are = |shape: Shape| (shape, (0..shape.nodes()).collect());
    Some(match number {
        15 => as_they_are(Shape::simplex(1, 0)),
        1 => as_they_are(Shape::simplex(1, 1)),
        8 => as_they_are(Shape::simplex(2, 1)),
        2 => as_they_are(Shape::simplex(1, 2)),
        9 => as_they_are(Shape::simplex(2, 2)),
        4 => as_they_are(Shape::simplex(1, 3)),
        11 => as_they_are(Shape::simplex(2, 3)),
        3 => (Shape::product(1, 2), vec![0, 1, 3, 2]),
        10 => (Shape::product(2, 2), vec![0, 4, 1, 7, 8, 5, 3, 6, 2]),
        5 => (Shape::product(1, 3), vec![0, 1, 3, 2, 4, 5, 7, 6]),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A square of two triangles, one of them inside out, with a named side and a numbered one.
    const SQUARE: &str = "$MeshFormat\n4.1 0 8\n$EndMeshFormat\n$PhysicalNames\n2\n1 7 \"left side\"\n2 1 \"body\"\n\
        $EndPhysicalNames\n$Entities\n0 2 1 0\n1 0 0 0 0 1 0 1 7 0\n2 1 0 0 1 1 0 1 9 0\n1 0 0 0 1 1 0 1 1 0\n$EndEntities\n\
        $Nodes\n1 5 1 9\n2 1 0 5\n1\n2\n4\n3\n9\n0 0 0\n1 0 0\n0 1 0\n1 1 0\n5 5 5\n$EndNodes\n\
        $Elements\n3 4 1 4\n1 1 1 1\n1 1 4\n1 2 1 1\n2 2 3\n2 1 2 2\n3 1 2 3\n4 1 4 3\n$EndElements\n$Periodic\n0\n$EndPeriodic\n";

    #[test]
    fn a_mesh_is_read_with_its_groups_and_without_nodes_that_no_element_has() {
        let mesh = parse(SQUARE).unwrap();
        assert_eq!((mesh.shape, mesh.points.len()), (Shape::simplex(1, 2), 4));
        assert_eq!(mesh.points, [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 1.0, 0.0]]);
        // The second triangle has been turned.
        assert_eq!(mesh.elements, [0, 1, 2, 0, 2, 3]);
        assert_eq!(
            (&mesh.groups[..], &mesh.faces[..]),
            (&["left side".into(), "9".into()][..], &[0, 3, 1, 2][..])
        );
        assert_eq!(mesh.face_groups, [0, 1]);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let said = |from: &str, to: &str| {
            assert!(SQUARE.contains(from));
            parse(&SQUARE.replacen(from, to, 1)).unwrap_err()
        };
        assert_eq!(
            said("4.1 0 8", "2.2 0 8"),
            (2, "the mesh is of version 2.2: save it as 4.1 (gmsh -format msh41)".into())
        );
        assert_eq!(
            said("4.1 0 8", "4.1 1 8"),
            (2, "the mesh is binary: save it as ASCII (gmsh -setnumber Mesh.Binary 0)".into())
        );
        assert_eq!(said("0 1 0\n1 1 0", "0 x 0\n1 1 0").1, "'x' is no number of the place of a node");
        assert_eq!(said("0 1 0\n1 1 0", "0 inf 0\n1 1 0").1, "the place of node 4 is no finite number");
        assert_eq!(said("\n2\n4\n3", "\n2\n2\n3").1, "node 2 comes twice");
        assert_eq!(said("3 1 2 3", "3 1 2 8").1, "element 3 has node 8, which there is none of");
        assert_eq!(said("3 1 2 3", "3 1 2").1, "an element: 4 numbers are expected, there are 3");
        assert_eq!(said("3 1 2 3", "3 1 2 2").1, "element 0 of 2 dimensions, counted from 0, is flat");
        assert_eq!(
            said("4 1 4 3\n$End", "4 1 4 3\n7 7 8 9\n$End"),
            (38, "$Elements has more lines than its blocks announce".into())
        );
        assert_eq!(
            said("4 1 4 3\n$End", "4 1 4 3\n\n 7 7 8 9\n$End"),
            (39, "$Elements has more lines than its blocks announce".into())
        );
        assert_eq!(said("3 4 1 4", "3 5 1 4").1, "5 elements are announced here, and there are 4");
        assert_eq!(said("1 5 1 9", "1 4 1 9").1, "4 nodes are announced here, and there are 5");
        assert!(said("2 1 2 2", "2 1 17 2").1.starts_with("elements of type 17 are not known here"));
        assert_eq!(
            said("$EndElements", "$EndElement").1,
            "$Elements does not end with $EndElements: the file has been cut off"
        );
        assert_eq!(
            said("1 0 0 0 0 1 0 1 7 0", "1 0 0 0 0 1 0 9 7 0").1,
            "an entity has 9 physical groups, and 2 numbers follow"
        );
        assert_eq!(
            said("1 7 \"left", "x 7 \"left").1,
            "'x 7 \"left side\"' is no name: a dimension, a number and a name in quotes are expected"
        );
        assert!(parse("{}").unwrap_err().1.ends_with("is this a mesh of Gmsh?"));
        assert!(parse("").unwrap_err().1.ends_with("is this a mesh of Gmsh?"));
        let end = SQUARE.split("$Elements").next().unwrap();
        assert!(parse(end).unwrap_err().1.starts_with("there are no elements of two or three dimensions"));
    }

    proptest! {
        /// Whatever is in a file: a mesh or a sentence, and whatever is a mesh can be cut.
        #[test]
        fn nothing_in_a_file_is_trusted(at in 0..SQUARE.len(), len in 0usize..4, with in "[-0-9a-z .\n$]{0,4}") {
            let mut text = SQUARE.to_owned();
            text.replace_range(at..(at + len).min(SQUARE.len()), &with);
            if let Ok(mesh) = parse(&text) {
                let own: usize = mesh.submeshes(2).iter().map(|part| part.own).sum();
                prop_assert_eq!(own, mesh.points.len());
            }
        }
    }
}
