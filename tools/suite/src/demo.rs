use crate::context::Context;
use anyhow::Result;
use dune_machine::Series;
pub fn run(_c: &Context, _k: Series) -> Result<u8> {
    Ok(1)
}
