//! Arrays of numbers in numpy's own files, of any number of dimensions.

use crate::npy::{Header, MAGIC};
use runtime::schema::{Number, Value};
use serde_json::Value as Json;

/// A file with the numbers of a value; `None` if it is not made of numbers of one type, in rows of one length.
pub(super) fn write(value: &Value) -> Option<Vec<u8>> {
    let mut numbers = Vec::new();
    let (number, shape) = flatten(value, &mut numbers)?;
    let header = Header { descr: &descr(number)?, fortran_order: false, shape };
    Some([header.encode()?, numbers].concat())
}

fn descr(number: Number) -> Option<String> {
    let size = number.size_bytes();
    let kind = match number {
        _ if number.is_float() => 'f',
        _ if number.is_signed() => 'i',
        _ => 'u',
    };
    let order = if size == 1 { '|' } else { '<' };
    (size <= 8).then(|| format!("{order}{kind}{size}"))
}

/// Appends the numbers of a value; their type, and how many there are along each dimension.
fn flatten(value: &Value, out: &mut Vec<u8>) -> Option<(Number, Vec<usize>)> {
    match value {
        Value::Number(number, bits) => {
            out.extend_from_slice(&bits.to_le_bytes()[..number.size_bytes()]);
            Some((*number, Vec::new()))
        }
        Value::Bulk(number, buffer) => {
            out.extend_from_slice(buffer.bytes());
            Some((*number, vec![buffer.len() / number.size_bytes()]))
        }
        Value::Seq(values) | Value::Tuple(values) => {
            let (number, mut dims) = flatten(values.first()?, out)?;
            for value in &values[1..] {
                if flatten(value, out)? != (number, dims.clone()) {
                    return None;
                }
            }
            dims.insert(0, values.len());
            Some((number, dims))
        }
        _ => None,
    }
}

/// The numbers of a file, as lists inside lists.
///
/// # Errors
/// If it is no such file, or holds something else than numbers.
pub(super) fn read(bytes: &[u8]) -> Result<Json, String> {
    let (text, numbers) = split(bytes).ok_or("it is no .npy file")?;
    let Header { descr, fortran_order, shape: dims } = Header::parse(text).map_err(|e| e.to_string())?;
    let (order, kind) = descr.split_at_checked(1).unwrap_or_default();
    let is_big = match order {
        ">" => true,
        "<" | "|" => false,
        "=" => cfg!(target_endian = "big"),
        _ => return Err(format!("its type is {descr}, and only numbers can be read")),
    };
    let number = match kind {
        "b1" | "u1" => Number::U8,
        "u2" => Number::U16,
        "u4" => Number::U32,
        "u8" => Number::U64,
        "i1" => Number::I8,
        "i2" => Number::I16,
        "i4" => Number::I32,
        "i8" => Number::I64,
        "f4" => Number::F32,
        "f8" => Number::F64,
        _ => {
            return Err(format!(
                "its type is {descr}, and only whole and floating-point numbers can be read"
            ));
        }
    };
    if dims.len() > 1 && fortran_order {
        return Err("its numbers are column by column: save it with numpy.ascontiguousarray".into());
    }
    let count = dims.iter().try_fold(1usize, |product, count| product.checked_mul(*count));
    let length = count.and_then(|count| count.checked_mul(number.size_bytes()));
    if length != Some(numbers.len()) {
        return Err(format!("it has {} bytes of numbers, and its shape is {dims:?}", numbers.len()));
    }
    let one = |bytes: &[u8]| {
        let mut little = bytes.to_vec();
        if is_big {
            little.reverse();
        }
        Value::Number(number, number.of_bytes(&little)).to_json()
    };
    let mut level: Vec<Json> = numbers.chunks_exact(number.size_bytes()).map(one).collect();
    // From the innermost dimension to the outermost.
    for &count in dims.iter().skip(1).rev() {
        level = level.chunks(count.max(1)).map(|row| Json::from(row.to_vec())).collect();
    }
    match (dims.is_empty(), level.first()) {
        (true, Some(number)) => Ok(number.clone()),
        _ => Ok(Json::from(level)),
    }
}

/// The text of the header, and the bytes after it.
fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = bytes.strip_prefix(&MAGIC)?;
    let (version, rest) = rest.split_at_checked(2)?;
    let (length, rest) = match version[0] {
        1 => rest.split_at_checked(2)?,
        2 | 3 => rest.split_at_checked(4)?,
        _ => return None,
    };
    let length = length.iter().rev().fold(0usize, |length, byte| length << 8 | usize::from(*byte));
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use runtime::buffer::Buffer;
    use serde_json::json;

    #[test]
    fn arrays_come_back_from_their_files() {
        let number = |value: f64| Value::Number(Number::F64, value.to_bits().into());
        let row = |a, b| Value::Tuple(vec![number(a), number(b)]);
        let matrix = Value::Seq(vec![row(1.0, -2.5), row(f64::NAN, 0.1), row(3.0, 4.0)]);
        let file = write(&matrix).unwrap();
        assert!(file.len() == 128 + 48 && file[..128].ends_with(b" \n"), "{file:?}");
        assert!(file[10..].starts_with(b"{'descr': '<f8', 'fortran_order': False, 'shape': (3, 2), }"));
        assert_eq!(read(&file), Ok(json!([[1.0, -2.5], ["NaN", 0.1], [3.0, 4.0]])));
        let bulk = Value::Bulk(Number::I16, Buffer::from_slice(&[1i16.to_le(), (-2i16).to_le()]));
        assert_eq!(read(&write(&bulk).unwrap()), Ok(json!([1, -2])));
        assert_eq!(read(&write(&number(7.0)).unwrap()), Ok(json!(7.0)));
        assert_eq!(write(&Value::Seq(vec![row(1.0, 2.0), number(1.0)])), None, "rows of several lengths");
        assert_eq!(write(&Value::Text("1".into())), None);
        // As numpy writes it on a machine of the other byte order.
        let big: [&[u8]; 4] = [
            &MAGIC,
            &[1, 0, 56, 0],
            b"{'descr': '>i2', 'fortran_order': False, 'shape': (2,)}\n",
            &[1, 0, 255, 254],
        ];
        assert_eq!(read(&big.concat()), Ok(json!([256, -2])));
        for (bytes, sentence) in [
            (&b"abc"[..], "it is no .npy file"),
            (&file[..150], "it has 22 bytes of numbers, and its shape is [3, 2]"),
        ] {
            assert_eq!(read(bytes), Err(sentence.into()));
        }
    }
}
