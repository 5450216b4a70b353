"""Arguments that the driver makes: tensor maps, textures and surfaces."""
