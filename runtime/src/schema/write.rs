//! From values to bytes: those that a program of today would write.

use super::shape::Number;
use super::value::Value;
use crate::buffer::Buffer;
use crate::payload::Packed;

impl Value {
    /// The value as bytes, with its bulk arrays beside the body.
    #[must_use]
    pub fn write(&self) -> Packed {
        let mut writer = Writer { body: Vec::new(), attachments: Vec::new() };
        writer.value(self);
        Packed { body: writer.body.into(), attachments: writer.attachments }
    }
}

struct Writer {
    body: Vec<u8>,
    attachments: Vec<Buffer>,
}

impl Writer {
    fn value(&mut self, value: &Value) {
        match value {
            Value::Unit => {}
            Value::Bool(is_so) => self.body.push(u8::from(*is_so)),
            Value::Char(one) => self.bytes(one.to_string().as_bytes()),
            Value::Text(text) => self.bytes(text.as_bytes()),
            Value::Bytes(bytes) => self.bytes(bytes),
            Value::Number(number, bits) => self.number(*number, *bits),
            Value::Option(None) => self.body.push(0),
            Value::Option(Some(of)) => {
                self.body.push(1);
                self.value(of);
            }
            Value::Seq(values) => {
                self.varint(values.len() as u128);
                values.iter().for_each(|value| self.value(value));
            }
            Value::Tuple(values) => values.iter().for_each(|value| self.value(value)),
            Value::Map(pairs) => {
                self.varint(pairs.len() as u128);
                for (key, value) in pairs {
                    self.value(key);
                    self.value(value);
                }
            }
            Value::Struct(fields) => fields.iter().for_each(|(_, field)| self.value(field)),
            Value::Variant(number, _, inside) => {
                self.varint((*number).into());
                self.value(inside);
            }
            Value::Bulk(number, buffer) => {
                self.varint(0);
                self.varint(self.attachments.len() as u128);
                self.varint((buffer.len() / number.size_bytes()) as u128);
                self.attachments.push(buffer.clone());
            }
        }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.varint(bytes.len() as u128);
        self.body.extend_from_slice(bytes);
    }

    fn number(&mut self, number: Number, bits: u128) {
        let size = number.size_bytes();
        if size == 1 || number.is_float() {
            self.body.extend_from_slice(&bits.to_le_bytes()[..size]);
        } else if number.is_signed() {
            self.varint((bits << 1) ^ ((bits as i128) >> 127) as u128);
        } else {
            self.varint(bits);
        }
    }

    fn varint(&mut self, mut value: u128) {
        while value >= 0x80 {
            self.body.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.body.push(value as u8);
    }
}
